#include "world/mpi_world.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/error.hpp"
#include "world/arguments.hpp"

namespace lockstep::world {
namespace {

int count_of(std::size_t bytes) { return static_cast<int>(bytes); }

// Calls f(piece) for spans of at most `largest` bytes, in whole numbers of `unit` bytes.
template <class Span, class F>
void for_each_piece(Span data, std::size_t largest, std::size_t unit, F f) {
    const std::size_t step = std::max<std::size_t>(largest / unit, 1) * unit;
    for (std::size_t offset = 0; offset < data.size(); offset += step)
        f(data.subspan(offset, std::min(step, data.size() - offset)));
}

}  // namespace

MpiWorld::MpiWorld(Communicator comm, std::shared_ptr<const Bf16Operations> bf16, std::size_t largest_call,
                   SendMode mode)
    : comm_(std::move(comm)),
      inner_(Communicator::duplicate(comm_.get())),
      bf16_(std::move(bf16)),
      largest_call_(largest_call),
      mode_(mode),
      rank_(comm_.rank()),
      size_(comm_.size()) {
    const auto local = Communicator::on_this_host(comm_.get());
    local_rank_ = local.rank();
    local_size_ = local.size();
}

std::string MpiWorld::host() const { return host_name(); }

std::unique_ptr<World> MpiWorld::split(int colour, int key) {
    check_colour(colour);
    return std::make_unique<MpiWorld>(Communicator::split(comm_.get(), colour, key), bf16_, largest_call_, mode_);
}

void MpiWorld::barrier() { check(MPI_Barrier(comm_.get())); }

void MpiWorld::broadcast(std::span<std::byte> data, int root) {
    check_rank(*this, root, "root");
    for_each_piece(data, largest_call_, 1, [&](auto piece) {
        check(MPI_Bcast(piece.data(), count_of(piece.size()), MPI_BYTE, root, comm_.get()));
    });
}

void MpiWorld::gather(std::span<const std::byte> send, std::span<std::byte> receive, int root) {
    check_rank(*this, root, "root");
    if (rank_ == root) check_parts(*this, receive.size(), send.size(), "gather");
    const int bytes = count_of(send.size());
    if (send.size() * size_ <= largest_call_) {
        check(MPI_Gather(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE, root, comm_.get()));
        return;
    }
    const int tag = next_tags(1);
    std::vector<Receive> receives;
    for (int from = 0; rank_ == root && from < size_; ++from)
        receives.push_back({receive.subspan(from * send.size(), send.size()), from, tag});
    const Send mine{send, root, tag};
    send_apart({&mine, 1}, receives)->wait();
}

void MpiWorld::all_gather(std::span<const std::byte> send, std::span<std::byte> receive) {
    check_parts(*this, receive.size(), send.size(), "all_gather");
    if (receive.size() > largest_call_) return start_all_gather(send, receive)->wait();
    place_own_part(send, receive, rank_);
    const int bytes = count_of(send.size());
    check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, receive.data(), bytes, MPI_BYTE, comm_.get()));
}

void MpiWorld::all_reduce(std::span<std::byte> data, Number type, Reduce op) {
    check_numbers(data.size(), type);
    for_each_piece(data, largest_call_, size_of(type), [&](auto piece) {
        check(MPI_Allreduce(MPI_IN_PLACE, piece.data(), count_of(piece.size() / size_of(type)), datatype(type),
                            operation(type, op, *bf16_), comm_.get()));
    });
}

void MpiWorld::reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive, Number type, Reduce op) {
    start_reduce_scatter(send, receive, type, op)->wait();
}

void MpiWorld::all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) {
    check_all_to_all(*this, send.size(), receive.size());
    if (send.size() > largest_call_) return start_all_to_all(send, receive)->wait();
    const int bytes = count_of(send.size() / size_);
    check(MPI_Alltoall(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE, comm_.get()));
}

void MpiWorld::all_to_all_v(std::span<const std::byte> send, std::span<const std::size_t> send_bytes,
                            std::span<std::byte> receive, std::span<const std::size_t> receive_bytes) {
    start_all_to_all_v(send, send_bytes, receive, receive_bytes)->wait();
}

void MpiWorld::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
    start_exchange(sends, receives)->wait();
}

void MpiWorld::abort(int exit_status) {
    MPI_Abort(MPI_COMM_WORLD, exit_status);
    std::_Exit(exit_status);
}

// Tags of messages of our own. Every rank draws the same, because collectives are called in the same order by all.
int MpiWorld::next_tags(int count) {
    constexpr int smallest_upper_bound = 32767;  // that MPI promises
    if (tag_ + count > smallest_upper_bound) tag_ = 0;
    const int first = tag_;
    tag_ += count;
    return first;
}

std::unique_ptr<MpiRequest> MpiWorld::send_apart(std::span<const Send> sends, std::span<const Receive> receives) {
    auto request = std::make_unique<MpiRequest>();
    post_messages(*request, inner_.get(), largest_call_, mode_, sends, receives);
    return request;
}

}  // namespace lockstep::world
