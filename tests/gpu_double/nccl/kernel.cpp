#include "gpu_double/nccl/kernel.hpp"

#include <algorithm>
#include <cstring>

#include "gpu_double/nccl/misuse.hpp"
#include "gpu_double/nccl/reduce.hpp"
#include "gpu_double/nccl/resident.hpp"

namespace lockstep::nccl_double {

using Kind = CollectiveCall::Kind;

void Engine::fail(ncclResult_t result, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_ != ncclSuccess) return;
    last_error_ = why;
    failure_ = result;
}

std::string Engine::last_error() const {
    const std::lock_guard lock(mutex_);
    return last_error_;
}

void Engine::release() {
    released_ = true;
    rendezvous.ring();
}

void Engine::look_for_peers() {
    if (failure_ != ncclSuccess) return;
    if (const std::string missing = rendezvous.missing_peer(); !missing.empty()) fail(ncclRemoteError, missing);
}

/// False when the communicator was released before.
template <class Done>
bool Engine::wait_until(Done&& done) {
    for (;;) {
        const std::uint32_t bell = rendezvous.bell();
        if (released_) return false;
        if (done()) return true;
        look_for_peers();
        rendezvous.wait(bell);
    }
}

template <class F>
bool Engine::wait_for_all(F&& value, std::uint64_t least) {
    return wait_until([&] {
        for (int r = 0; r < rendezvous.ranks(); ++r)
            if (value(rendezvous.seat(r)).load(std::memory_order_acquire) < least) return false;
        return true;
    });
}

void Engine::run(const Launch& launch) {
    ++running_;
    if (wait_until([&] { return done_ == launch.number; })) {
        const auto place = take_place(device_, [this] {
            look_for_peers();
            return is_released();
        });
        if (place) {
            if (launch.hangs) wait_until([] { return false; });
            for (const Collective& collective : launch.collectives)
                if (!is_released()) run_collective(collective);
            if (!is_released()) run_messages(launch.messages);
        }
    }
    ++done_;
    --running_;
    rendezvous.ring();
}

void Engine::agree_on(const CollectiveCall& call) {
    for (int r = 0; r < rendezvous.ranks(); ++r) {
        const CollectiveCall& other = rendezvous.seat(r).call;
        if (other == call) continue;
        misuse("collective {} of a communicator is {} on rank {} and {} on rank {}: they must be equal",
               rendezvous.seat(rendezvous.rank()).posted.load(), call.describe(), rendezvous.rank(), other.describe(),
               r);
    }
}

void Engine::run_collective(const Collective& c) {
    Seat& mine = rendezvous.seat(rendezvous.rank());
    const std::uint64_t number = mine.posted + 1;
    mine.call = c.call;
    mine.posted.store(number, std::memory_order_release);
    rendezvous.ring();
    if (!wait_for_all(
            [](Seat & s) -> auto& { return s.posted; }, number))
        return;
    agree_on(c.call);

    const auto type = static_cast<ncclDataType_t>(c.call.type);
    const auto op = static_cast<ncclRedOp_t>(c.call.op);
    const int ranks = rendezvous.ranks(), rank = rendezvous.rank();
    const std::size_t element = size_of(type), most = Seat::chunk_bytes / element;
    const std::size_t count = c.call.count;
    std::vector<const std::byte*> all;
    for (int r = 0; r < ranks; ++r) all.push_back(rendezvous.seat(r).chunk.data());

    const int parts = c.call.kind == Kind::reduce_scatter ? ranks : 1;
    for (int part = 0; part < parts; ++part) {
        for (std::size_t first = 0; first < count; first += most) {
            const std::size_t n = std::min(most, count - first), bytes = n * element;
            // What was in the chunk before has been read.
            const std::uint64_t written = mine.written;
            if (!wait_for_all(
                    [](Seat & s) -> auto& { return s.read; }, written))
                return;
            const std::size_t from = (static_cast<std::size_t>(part) * count + first) * element;
            if (c.call.kind != Kind::broadcast || rank == c.call.root)
                std::memcpy(mine.chunk.data(), c.send + from, bytes);
            mine.written.store(written + 1, std::memory_order_release);
            rendezvous.ring();
            if (!wait_for_all(
                    [](Seat & s) -> auto& { return s.written; }, written + 1))
                return;
            std::byte* const to = c.receive + first * element;
            switch (c.call.kind) {
                case Kind::all_reduce: reduce(all, to, n, type, op); break;
                case Kind::reduce_scatter:
                    if (part == rank) reduce(all, to, n, type, op);
                    break;
                case Kind::all_gather:
                    for (int r = 0; r < ranks; ++r)
                        std::memcpy(to + static_cast<std::size_t>(r) * count * element,
                                    all[static_cast<std::size_t>(r)], bytes);
                    break;
                case Kind::broadcast: std::memcpy(to, all[static_cast<std::size_t>(c.call.root)], bytes); break;
            }
            mine.read.store(written + 1, std::memory_order_release);
            rendezvous.ring();
        }
    }
}

namespace {

/// One end of a message on its way. Nothing is written before the other end is there.
class End {
public:
    End(Rendezvous& rendezvous, const Message& message)
        : rendezvous_(rendezvous),
          message_(message),
          is_send_(message.way == Message::Way::send),
          channel_(is_send_ ? rendezvous.channel(rendezvous.rank(), message.peer)
                            : rendezvous.channel(message.peer, rendezvous.rank())),
          bytes_(message.call.count * size_of(static_cast<ncclDataType_t>(message.call.type))) {}

    bool is_done() const { return is_done_; }
    bool shares_channel(const End& other) const { return &channel_ == &other.channel_ && is_send_ == other.is_send_; }

    /// True when something moved.
    bool advance() {
        if (number_ == 0) {
            post();
            return true;
        }
        if (!has_met_) {
            const auto& there = is_send_ ? channel_.receives : channel_.sends;
            if (there.load(std::memory_order_acquire) < number_) return false;
            expect_equal();
            has_met_ = true;
        }
        return is_send_ ? give() : take();
    }

private:
    void post() {
        (is_send_ ? channel_.send : channel_.receive) = message_.call;
        auto& begun = is_send_ ? channel_.sends : channel_.receives;
        number_ = begun + 1;
        begun.store(number_, std::memory_order_release);
    }
    void expect_equal() const {
        const MessageCall &sent = channel_.send, &expected = channel_.receive;
        if (sent == expected) return;
        const int from = is_send_ ? rendezvous_.rank() : message_.peer,
                  to = is_send_ ? message_.peer : rendezvous_.rank();
        misuse("message {} from rank {} to rank {}: {} are sent and {} received: they must be equal", number_, from, to,
               sent.describe(), expected.describe());
    }
    bool give() {
        const std::uint64_t written = channel_.written;
        if (channel_.taken.load(std::memory_order_acquire) < written) return false;
        if (has_moved_ && moved_ == bytes_) {
            is_done_ = true;
            return true;
        }
        const std::size_t n = next();
        std::memcpy(channel_.chunk.data(), message_.data + moved_, n);
        step(n, channel_.written);
        return true;
    }
    bool take() {
        if (channel_.written.load(std::memory_order_acquire) == channel_.taken) return false;
        const std::size_t n = next();
        std::memcpy(message_.data + moved_, channel_.chunk.data(), n);
        step(n, channel_.taken);
        is_done_ = moved_ == bytes_;
        return true;
    }
    std::size_t next() const { return std::min(bytes_ - moved_, Channel::chunk_bytes); }
    void step(std::size_t n, std::atomic<std::uint64_t>& counter) {
        moved_ += n;
        has_moved_ = true;
        counter.store(counter + 1, std::memory_order_release);
    }

    Rendezvous& rendezvous_;
    const Message& message_;
    bool is_send_;
    Channel& channel_;
    std::size_t bytes_, moved_ = 0;
    std::uint64_t number_ = 0;
    bool has_met_ = false, has_moved_ = false, is_done_ = false;
};

}  // namespace

void Engine::run_messages(const std::vector<Message>& messages) {
    std::vector<End> ends;
    for (const Message& message : messages) ends.emplace_back(rendezvous, message);
    wait_until([&] {
        bool all_done = true;
        for (bool moves = true; moves;) {
            moves = false;
            all_done = true;
            for (std::size_t i = 0; i < ends.size(); ++i) {
                if (ends[i].is_done()) continue;
                all_done = false;
                // Messages between two ranks go one after the other.
                const bool is_first =
                    std::none_of(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(i),
                                 [&](const End& e) { return !e.is_done() && e.shares_channel(ends[i]); });
                if (!is_first || !ends[i].advance()) continue;
                moves = true;
                rendezvous.ring();
            }
            if (is_released()) return false;
        }
        return all_done;
    });
}

}  // namespace lockstep::nccl_double
