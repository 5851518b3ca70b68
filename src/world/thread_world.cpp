// Ranks as threads of one process: data really move between their buffers, and one rank's failure reaches the others as
// an exception.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <thread>

#include "base/error.hpp"
#include "world/arguments.hpp"
#include "world/thread_hub.hpp"

namespace lockstep::world {
namespace {

using Kind = CollectiveCall::Kind;

class ThreadWorld final : public World {
public:
    ThreadWorld(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return hub_->size(); }
    int local_rank() const override { return rank_; }
    int local_size() const override { return hub_->size(); }
    std::string host() const override { return host_name(); }

    std::unique_ptr<World> split(int colour, int key) override;

    void barrier() override { hub_->join(rank_, {Kind::barrier}, {}, {})->wait(); }
    void broadcast(std::span<std::byte> data, int root) override { start_broadcast(data, root)->wait(); }
    void gather(std::span<const std::byte> send, std::span<std::byte> receive, int root) override {
        check_rank(*this, root, "root");
        if (rank_ == root) check_parts(*this, receive.size(), send.size(), "gather");
        hub_->join(rank_, {.kind = Kind::gather, .bytes = send.size(), .root = root}, send, receive)->wait();
    }
    void all_gather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        start_all_gather(send, receive)->wait();
    }
    void all_reduce(std::span<std::byte> data, Number type, Reduce op) override {
        start_all_reduce(data, type, op)->wait();
    }
    void reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive, Number type,
                        Reduce op) override {
        start_reduce_scatter(send, receive, type, op)->wait();
    }
    void all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override {
        start_all_to_all(send, receive)->wait();
    }
    void all_to_all_v(std::span<const std::byte> send, std::span<const std::size_t> send_bytes,
                      std::span<std::byte> receive, std::span<const std::size_t> receive_bytes) override {
        start_all_to_all_v(send, send_bytes, receive, receive_bytes)->wait();
    }
    void exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
        start_exchange(sends, receives)->wait();
    }

    std::unique_ptr<Request> start_broadcast(std::span<std::byte> data, int root) override {
        check_rank(*this, root, "root");
        return hub_->join(rank_, {.kind = Kind::broadcast, .bytes = data.size(), .root = root}, data, data);
    }
    std::unique_ptr<Request> start_all_reduce(std::span<std::byte> data, Number type, Reduce op) override {
        check_numbers(data.size(), type);
        return hub_->join(rank_, {.kind = Kind::all_reduce, .bytes = data.size(), .type = type, .op = op}, data, data);
    }
    std::unique_ptr<Request> start_reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive,
                                                  Number type, Reduce op) override {
        check_numbers(receive.size(), type);
        check_parts(*this, send.size(), receive.size(), "reduce_scatter");
        return hub_->join(rank_, {.kind = Kind::reduce_scatter, .bytes = send.size(), .type = type, .op = op}, send,
                          receive);
    }
    std::unique_ptr<Request> start_all_gather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        check_parts(*this, receive.size(), send.size(), "all_gather");
        return hub_->join(rank_, {.kind = Kind::all_gather, .bytes = send.size()}, send, receive);
    }
    std::unique_ptr<Request> start_all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override {
        check_all_to_all(*this, send.size(), receive.size());
        return hub_->join(rank_, {.kind = Kind::all_to_all, .bytes = send.size()}, send, receive);
    }
    std::unique_ptr<Request> start_all_to_all_v(std::span<const std::byte> send,
                                                std::span<const std::size_t> send_bytes, std::span<std::byte> receive,
                                                std::span<const std::size_t> receive_bytes) override {
        constexpr int own_tag = -1;  // callers have none below zero
        const PartMessages parts = messages_of_parts(*this, send, send_bytes, receive, receive_bytes, own_tag);
        return hub_->post(rank_, parts.sends, parts.receives);
    }
    std::unique_ptr<Request> start_exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
        check_messages(*this, sends, receives);
        return hub_->post(rank_, sends, receives);
    }

    void abort(int exit_status) override { std::_Exit(exit_status); }

private:
    std::shared_ptr<Hub> hub_;
    int rank_;
};

std::unique_ptr<World> ThreadWorld::split(int colour, int key) {
    check_colour(colour);
    struct Choice {
        int colour, key;
    };
    const Choice mine{colour, key};
    std::vector<Choice> choices(static_cast<std::size_t>(size()));
    all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{choices}));
    std::vector<int> members;
    for (int rank = 0; rank < size(); ++rank)
        if (choices[rank].colour == colour) members.push_back(rank);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return choices[a].key < choices[b].key; });
    const auto position = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::make_unique<ThreadWorld>(hub_->child(rank_, colour, members), static_cast<int>(position));
}

std::string describe(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) { return e.what(); } catch (...) {
        return "an exception of unknown type";
    }
}

std::exception_ptr run_rank(const std::shared_ptr<Program>& program, const std::shared_ptr<Hub>& hub, int rank,
                            Body& body) {
    std::exception_ptr error;
    try {
        ThreadWorld world(hub, rank);
        body.run(world);
    } catch (...) { error = std::current_exception(); }
    const std::scoped_lock lock(program->mutex);
    program->ended[rank] = true;
    if (error) program->fail(fmt::format("rank {} failed: {}", rank, describe(error)));
    program->changed.notify_all();
    return error;
}

}  // namespace

void run_thread_world(int ranks, Body& body) {
    if (ranks < 1) throw LogicError(fmt::format("a thread world of {} ranks", ranks));
    const auto program = std::make_shared<Program>(ranks);
    std::vector<int> members(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) members[rank] = rank;
    const auto hub = std::make_shared<Hub>(program, std::move(members));

    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < ranks; ++rank)
            threads.emplace_back([&, rank] { errors[rank] = run_rank(program, hub, rank, body); });
    }
    // A cause comes before its consequences in other ranks.
    for (const auto consequence : {false, true})
        for (int rank = 0; rank < ranks; ++rank)
            if (errors[rank] && program->told[rank] == consequence) std::rethrow_exception(errors[rank]);
}

}  // namespace lockstep::world
