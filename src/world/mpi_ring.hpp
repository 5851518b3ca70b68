// Ring all-reduce by point-to-point messages: progresses well inside test(), where MPI_Iallreduce of large buffers does
// not.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "world/mpi_handles.hpp"

namespace lockstep::world {

/// The data are cut into windows that fit the cache; `lanes` windows are in flight together, each a ring all-reduce of
/// its own: n-1 steps that pass and add one n-th of the window, n-1 that pass the sums on. Per rank 2(n-1)/n of the
/// bytes are sent. Every rank ends with equal bits: each part is summed once, in ring order.
class RingAllReduce final : public Request {
public:
    static constexpr int lanes = 4;
    static constexpr std::size_t window_bytes_per_rank = 256 * 1024;

    /// Collective on `comm`, which has more than one rank; the tags first_tag ... first_tag + lanes - 1 are this
    /// request's own.
    RingAllReduce(const Communicator& comm, std::span<std::byte> data, Number type, Reduce op, int first_tag);
    bool test() override;
    void wait() override;

private:
    struct Lane {
        std::size_t window = 0;  // index of the window in flight
        int step = 0;            // of 2(n-1)
        std::array<MPI_Request, 2> messages{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        std::span<std::byte> incoming;  // room for the part that is to be added
        bool active = false;
    };

    std::span<std::byte> part(const Lane& lane, int index) const;
    void post(int lane);
    void advance(int lane);

    MPI_Comm comm_;
    int rank_, size_;
    std::span<std::byte> data_;
    Number type_;
    Reduce op_;
    int first_tag_;
    std::size_t windows_;
    std::unique_ptr<std::byte[]> room_;
    std::array<Lane, lanes> in_flight_;
    int active_ = 0;
};

}  // namespace lockstep::world
