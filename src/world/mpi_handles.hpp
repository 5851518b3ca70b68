// Owners of MPI handles, and the check that every MPI call goes through.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <source_location>

#include "world/world.hpp"

namespace lockstep::world {

/// Throws RuntimeError with MPI's own text for `code` and the place of the call, unless it is MPI_SUCCESS.
void check(int code, std::source_location where = std::source_location::current());

/// Owns a communicator that returns errors. It is not freed after MPI_Finalize, nor while an exception unwinds: peers
/// may be gone.
class Communicator {
public:
    static Communicator duplicate(MPI_Comm of);
    static Communicator split(MPI_Comm of, int colour, int key);
    /// The ranks of `of` that share this host's memory.
    static Communicator on_this_host(MPI_Comm of);

    Communicator(Communicator&& other) noexcept;
    Communicator& operator=(Communicator&&) = delete;
    ~Communicator();

    MPI_Comm get() const { return comm_; }
    int rank() const;
    int size() const;

private:
    explicit Communicator(MPI_Comm comm);
    MPI_Comm comm_;
    int uncaught_at_start_;
};

/// Owns the reductions that MPI lacks: bf16, carried as MPI_UINT16_T.
class Bf16Operations {
public:
    Bf16Operations();
    ~Bf16Operations();
    Bf16Operations(const Bf16Operations&) = delete;
    Bf16Operations& operator=(const Bf16Operations&) = delete;
    MPI_Op get(Reduce op) const { return operations_[static_cast<std::size_t>(op)]; }

private:
    std::array<MPI_Op, 3> operations_{MPI_OP_NULL, MPI_OP_NULL, MPI_OP_NULL};
};

MPI_Datatype datatype(Number type);
MPI_Op operation(Number type, Reduce op, const Bf16Operations& bf16);

}  // namespace lockstep::world
