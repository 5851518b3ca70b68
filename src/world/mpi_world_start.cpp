// The operations of MpiWorld that return before they are complete.
#include <algorithm>
#include <vector>

#include "world/arguments.hpp"
#include "world/mpi_ring.hpp"
#include "world/mpi_world.hpp"

namespace lockstep::world {
namespace {

// Below this size MPI_Iallreduce is as fast as the ring in 2 ranks, and takes fewer messages in more.
constexpr std::size_t smallest_ring = 64 * 1024;

int count_of(std::size_t bytes) { return static_cast<int>(bytes); }

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

std::unique_ptr<Request> MpiWorld::start_all_reduce(std::span<std::byte> data, Number type, Reduce op) {
    check_numbers(data.size(), type);
    if (size_ > 1 && data.size() >= smallest_ring)
        return std::make_unique<RingAllReduce>(inner_, data, type, op, next_tags(RingAllReduce::lanes));
    auto request = std::make_unique<MpiRequest>();
    if (size_ > 1)
        check(MPI_Iallreduce(MPI_IN_PLACE, data.data(), count_of(data.size() / size_of(type)), datatype(type),
                             operation(type, op, *bf16_), comm_.get(), request->add()));
    return request;
}

std::unique_ptr<Request> MpiWorld::start_reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive,
                                                        Number type, Reduce op) {
    check_numbers(receive.size(), type);
    check_parts(*this, send.size(), receive.size(), "reduce_scatter");
    auto request = std::make_unique<MpiRequest>();
    const auto mpi_type = datatype(type);
    const auto mpi_op = operation(type, op, *bf16_);
    if (send.size() <= largest_call_) {
        check(MPI_Ireduce_scatter_block(send.data(), receive.data(), count_of(receive.size() / size_of(type)), mpi_type,
                                        mpi_op, comm_.get(), request->add()));
        return request;
    }
    const std::size_t step = std::max<std::size_t>(largest_call_ / size_of(type), 1) * size_of(type);
    for (int root = 0; root < size_; ++root)
        for (std::size_t offset = 0; offset < receive.size(); offset += step) {
            const std::size_t bytes = std::min(step, receive.size() - offset);
            check(MPI_Ireduce(send.data() + root * receive.size() + offset, receive.data() + offset,
                              count_of(bytes / size_of(type)), mpi_type, mpi_op, root, comm_.get(), request->add()));
        }
    return request;
}

std::unique_ptr<Request> MpiWorld::start_all_gather(std::span<const std::byte> send, std::span<std::byte> receive) {
    check_parts(*this, receive.size(), send.size(), "all_gather");
    if (receive.size() <= largest_call_) {
        auto request = std::make_unique<MpiRequest>();
        const int bytes = count_of(send.size());
        check(
            MPI_Iallgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE, comm_.get(), request->add()));
        return request;
    }
    const int tag = next_tags(1);
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int peer = 0; peer < size_; ++peer) {
        sends.push_back({send, peer, tag});
        receives.push_back({receive.subspan(peer * send.size(), send.size()), peer, tag});
    }
    return send_apart(sends, receives);
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
    const int tag = next_tags(1);
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int peer = 0; peer < size_; ++peer) {
        sends.push_back({send.subspan(peer * part, part), peer, tag});
        receives.push_back({receive.subspan(peer * part, part), peer, tag});
    }
    return send_apart(sends, receives);
}

std::unique_ptr<Request> MpiWorld::start_exchange(std::span<const Send> sends, std::span<const Receive> receives) {
    check_messages(*this, sends, receives);
    auto request = std::make_unique<MpiRequest>();
    post_messages(*request, comm_.get(), largest_call_, sends, receives);
    return request;
}

}  // namespace lockstep::world
