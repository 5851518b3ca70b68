// A World request made of MPI requests.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "world/mpi_handles.hpp"

namespace lockstep::world {

/// Complete when all its parts are. A request destroyed earlier, as an unwinding rank does, abandons its parts: MPI
/// can't take them back.
class MpiRequest final : public Request {
public:
    /// Room for one more MPI request, to be filled by an MPI_I* call.
    MPI_Request* add();
    /// The same for a receive of `bytes` bytes; test() and wait() throw RuntimeError when the message has another
    /// length.
    MPI_Request* add_receive(std::size_t bytes);
    /// Before the first add(), when the number of parts is known.
    void reserve(std::size_t parts);

    bool test() override;
    void wait() override;

private:
    static constexpr int no_receive = -1;
    void check_parts(int code) const;

    std::vector<MPI_Request> parts_;
    std::vector<int> expected_;  // bytes, or no_receive
    std::vector<MPI_Status> statuses_;
    bool done_ = false;
};

/// Starts to send `data`, whose length fits an int.
void post_send(std::span<const std::byte> data, int to, int tag, MPI_Comm comm, SendMode mode, MPI_Request* request);

/// Posts all receives, then all sends, each cut into pieces of at most `largest` bytes.
void post_messages(MpiRequest& request, MPI_Comm comm, std::size_t largest, SendMode mode, std::span<const Send> sends,
                   std::span<const Receive> receives);

}  // namespace lockstep::world
