// A world of one rank: what is sent comes back, in the same call where it can.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "world/arguments.hpp"
#include "world/world.hpp"

namespace lockstep::world {
namespace {

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    if (from.size() != to.size()) throw LogicError("a message and its receive buffer differ in length");
    if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
}

class Done final : public Request {
public:
    bool test() override { return true; }
    void wait() override {}
};

// Messages of this rank to itself that still lack their other half, oldest first.
struct Mailbox {
    struct Open {
        std::span<const std::byte> source;
        std::span<std::byte> target;
        int tag;
        std::shared_ptr<int> unmatched;
    };
    std::list<Open> sends, receives;

    static std::optional<Open> take(std::list<Open>& from, int tag) {
        const auto match = std::find_if(from.begin(), from.end(), [&](const Open& o) { return o.tag == tag; });
        if (match == from.end()) return std::nullopt;
        Open open = *match;
        from.erase(match);
        --*open.unmatched;
        return open;
    }
    void post(const Send& send, const std::shared_ptr<int>& unmatched) {
        if (const auto receive = take(receives, send.tag)) return copy(send.data, receive->target);
        ++*unmatched;
        sends.push_back({send.data, {}, send.tag, unmatched});
    }
    void post(const Receive& receive, const std::shared_ptr<int>& unmatched) {
        if (const auto send = take(sends, receive.tag)) return copy(send->source, receive.data);
        ++*unmatched;
        receives.push_back({{}, receive.data, receive.tag, unmatched});
    }
};

class SelfExchange final : public Request {
public:
    explicit SelfExchange(std::shared_ptr<int> unmatched) : unmatched_(std::move(unmatched)) {}
    bool test() override { return *unmatched_ == 0; }
    void wait() override {
        if (*unmatched_ != 0)
            throw RuntimeError(
                "a world of one rank waits for a message that only it could send or receive; it would wait forever");
    }

private:
    std::shared_ptr<int> unmatched_;
};

class SelfWorld final : public World {
public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    int local_rank() const override { return 0; }
    int local_size() const override { return 1; }
    std::string host() const override { return host_name(); }

    std::unique_ptr<World> split(int colour, int) override {
        check_colour(colour);
        return make_self_world();
    }

    void barrier() override {}
    void broadcast(std::span<std::byte>, int root) override { check_rank(*this, root, "root"); }
    void gather(std::span<const std::byte> send, std::span<std::byte> receive, int root) override {
        check_rank(*this, root, "root");
        all_gather(send, receive);
    }
    void all_gather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        check_parts(*this, receive.size(), send.size(), "gather");
        copy(send, receive);
    }
    void all_reduce(std::span<std::byte> data, Number type, Reduce) override { check_numbers(data.size(), type); }
    void reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive, Number type, Reduce) override {
        check_numbers(receive.size(), type);
        check_parts(*this, send.size(), receive.size(), "reduce_scatter");
        copy(send, receive);
    }
    void all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override {
        check_all_to_all(*this, send.size(), receive.size());
        copy(send, receive);
    }
    void all_to_all_v(std::span<const std::byte> send, std::span<const std::size_t> send_bytes,
                      std::span<std::byte> receive, std::span<const std::size_t> receive_bytes) override {
        messages_of_parts(*this, send, send_bytes, receive, receive_bytes, 0);  // checks
        copy(send, receive);
    }
    void exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
        start_exchange(sends, receives)->wait();
    }

    std::unique_ptr<Request> start_broadcast(std::span<std::byte> data, int root) override {
        broadcast(data, root);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Request> start_all_reduce(std::span<std::byte> data, Number type, Reduce op) override {
        all_reduce(data, type, op);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Request> start_reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive,
                                                  Number type, Reduce op) override {
        reduce_scatter(send, receive, type, op);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Request> start_all_gather(std::span<const std::byte> send, std::span<std::byte> receive) override {
        all_gather(send, receive);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Request> start_all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) override {
        all_to_all(send, receive);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Request> start_all_to_all_v(std::span<const std::byte> send,
                                                std::span<const std::size_t> send_bytes, std::span<std::byte> receive,
                                                std::span<const std::size_t> receive_bytes) override {
        all_to_all_v(send, send_bytes, receive, receive_bytes);
        return std::make_unique<Done>();
    }
    std::unique_ptr<Request> start_exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
        check_messages(*this, sends, receives);
        auto unmatched = std::make_shared<int>(0);
        for (const auto& receive : receives) mailbox_.post(receive, unmatched);
        for (const auto& send : sends) mailbox_.post(send, unmatched);
        return std::make_unique<SelfExchange>(std::move(unmatched));
    }

    void abort(int exit_status) override { std::_Exit(exit_status); }

private:
    Mailbox mailbox_;
};

}  // namespace

std::unique_ptr<World> make_self_world() { return std::make_unique<SelfWorld>(); }

}  // namespace lockstep::world
