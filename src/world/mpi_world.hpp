// The World over an MPI communicator.
#pragma once

#include <cstddef>
#include <memory>

#include "world/mpi_handles.hpp"
#include "world/mpi_request.hpp"
#include "world/mpi_ring.hpp"

namespace lockstep::world {

class MpiWorld final : public World {
public:
    /// Collective on `comm`. No MPI call carries more than `largest_call` bytes in all: larger transfers are cut (those
    /// that go through a Ring by its windows).
    MpiWorld(Communicator comm, std::shared_ptr<const Bf16Operations> bf16, std::size_t largest_call, SendMode mode);

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    int local_rank() const override { return local_rank_; }
    int local_size() const override { return local_size_; }
    std::string host() const override;

    std::unique_ptr<World> split(int colour, int key) override;

    void barrier() override;
    void broadcast(std::span<std::byte> data, int root) override;
    void gather(std::span<const std::byte> send, std::span<std::byte> receive, int root) override;
    void all_gather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    void all_reduce(std::span<std::byte> data, Number type, Reduce op) override;
    void reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive, Number type, Reduce op) override;
    void all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override;
    void all_to_all_v(std::span<const std::byte> send, std::span<const std::size_t> send_bytes,
                      std::span<std::byte> receive, std::span<const std::size_t> receive_bytes) override;
    void exchange(std::span<const Send> sends, std::span<const Receive> receives) override;

    std::unique_ptr<Request> start_broadcast(std::span<std::byte> data, int root) override;
    std::unique_ptr<Request> start_all_reduce(std::span<std::byte> data, Number type, Reduce op) override;
    std::unique_ptr<Request> start_reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive,
                                                  Number type, Reduce op) override;
    std::unique_ptr<Request> start_all_gather(std::span<const std::byte> send, std::span<std::byte> receive) override;
    std::unique_ptr<Request> start_all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override;
    std::unique_ptr<Request> start_all_to_all_v(std::span<const std::byte> send,
                                                std::span<const std::size_t> send_bytes, std::span<std::byte> receive,
                                                std::span<const std::size_t> receive_bytes) override;
    std::unique_ptr<Request> start_exchange(std::span<const Send> sends, std::span<const Receive> receives) override;

    [[noreturn]] void abort(int exit_status) override;

private:
    std::unique_ptr<Request> start_ring(const RingJob& job);
    std::unique_ptr<MpiRequest> send_apart(std::span<const Send> sends, std::span<const Receive> receives);
    int next_tags(int count);

    Communicator comm_;
    Communicator inner_;  // our own messages, so that they never meet the caller's tags
    std::shared_ptr<const Bf16Operations> bf16_;
    std::size_t largest_call_;
    SendMode mode_;
    int rank_, size_, local_rank_, local_size_;
    int tag_ = 0;
};

}  // namespace lockstep::world
