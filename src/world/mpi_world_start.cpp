// The operations of MpiWorld that return before they are complete.
#include <algorithm>
#include <vector>

#include "world/arguments.hpp"
#include "world/mpi_world.hpp"

namespace lockstep::world {
namespace {

// From this size on a ring wins over MPI's own started collectives: in 2 ranks MPI_Iallreduce takes 2.5 times as long
// at 4 KiB, 1.2 at 16 KiB, 1.6 at 64 KiB, 2.2 from 8 MiB on; at 1 KiB both take 4 us. A ring has 2(n-1) steps and MPI
// log n, so the limit grows with n.
constexpr std::size_t smallest_ring_per_rank = 2 * 1024;

int count_of(std::size_t bytes) { return static_cast<int>(bytes); }
bool is_for_ring(std::size_t bytes, int ranks) {
    return ranks > 1 && bytes >= smallest_ring_per_rank * static_cast<std::size_t>(ranks);
}

}  // namespace

std::unique_ptr<Request> MpiWorld::start_broadcast(std::span<std::byte> data, int root) {
    check_rank(*this, root, "root");
    auto request = std::make_unique<MpiRequest>();
    for (std::size_t offset = 0; offset < data.size(); offset += largest_call_) {
        const auto piece = data.subspan(offset, std::min(largest_call_, data.size() - offset));
        check(MPI_Ibcast(piece.data(), count_of(piece.size()), MPI_BYTE, root, comm_.get(), request->add()));
    }
    return request;
}

std::unique_ptr<Request> MpiWorld::start_ring(const RingJob& job) {
    return std::make_unique<Ring>(inner_, job, next_tags(Ring::lanes), mode_);
}

std::unique_ptr<Request> MpiWorld::start_all_reduce(std::span<std::byte> data, Number type, Reduce op) {
    check_numbers(data.size(), type);
    if (is_for_ring(data.size(), size_)) return start_ring(all_reduce_job(data, type, op, size_));
    auto request = std::make_unique<MpiRequest>();
    if (size_ > 1)
        check(MPI_Iallreduce(MPI_IN_PLACE, data.data(), count_of(data.size() / size_of(type)), datatype(type),
                             operation(type, op, *bf16_), comm_.get(), request->add()));
    return request;
}

// Always a ring: MPI's own knows no receive buffer inside the send buffer, and no rank can tell whether another has
// one.
std::unique_ptr<Request> MpiWorld::start_reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive,
                                                        Number type, Reduce op) {
    check_numbers(receive.size(), type);
    check_parts(*this, send.size(), receive.size(), "reduce_scatter");
    if (size_ > 1) return start_ring(reduce_scatter_job(send, receive, type, op));
    place_own_part(send, receive, rank_);
    return std::make_unique<MpiRequest>();
}

std::unique_ptr<Request> MpiWorld::start_all_gather(std::span<const std::byte> send, std::span<std::byte> receive) {
    check_parts(*this, receive.size(), send.size(), "all_gather");
    place_own_part(send, receive, rank_);
    if (is_for_ring(receive.size(), size_)) return start_ring(all_gather_job(receive, size_));
    auto request = std::make_unique<MpiRequest>();
    if (size_ > 1)
        check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, receive.data(), count_of(send.size()), MPI_BYTE, comm_.get(),
                             request->add()));
    return request;
}

std::unique_ptr<Request> MpiWorld::start_all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) {
    check_all_to_all(*this, send.size(), receive.size());
    const std::size_t part = send.size() / size_;
    if (send.size() <= largest_call_) {
        auto request = std::make_unique<MpiRequest>();
        check(MPI_Ialltoall(send.data(), count_of(part), MPI_BYTE, receive.data(), count_of(part), MPI_BYTE,
                            comm_.get(), request->add()));
        return request;
    }
    const std::vector<std::size_t> equal(static_cast<std::size_t>(size_), part);
    return start_all_to_all_v(send, equal, receive, equal);
}

// By messages, whatever the size: ranks see different lengths, and must choose alike.
std::unique_ptr<Request> MpiWorld::start_all_to_all_v(std::span<const std::byte> send,
                                                      std::span<const std::size_t> send_bytes,
                                                      std::span<std::byte> receive,
                                                      std::span<const std::size_t> receive_bytes) {
    const PartMessages parts = messages_of_parts(*this, send, send_bytes, receive, receive_bytes, next_tags(1));
    return send_apart(parts.sends, parts.receives);
}

std::unique_ptr<Request> MpiWorld::start_exchange(std::span<const Send> sends, std::span<const Receive> receives) {
    check_messages(*this, sends, receives);
    auto request = std::make_unique<MpiRequest>();
    post_messages(*request, comm_.get(), largest_call_, mode_, sends, receives);
    return request;
}

}  // namespace lockstep::world
