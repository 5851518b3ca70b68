// What runs on a stream of the test double for one NCCL launch: collectives in order, then messages together.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "gpu_double/nccl/rendezvous.hpp"

namespace lockstep::nccl_double {

struct Collective {
    CollectiveCall call;
    const std::byte* send = nullptr;
    std::byte* receive = nullptr;
};
struct Message {
    enum class Way { send, receive } way = Way::send;
    int peer = 0;
    std::byte* data = nullptr;
    MessageCall call;
};
struct Launch {
    std::uint64_t number = 0;  ///< on its communicator: launches run in this order, on whatever streams
    std::vector<Collective> collectives;
    std::vector<Message> messages;
    bool hangs = false;  ///< as a test wished
};

/// A rank's end of a communicator, shared by its handle and the work on streams.
class Engine {
public:
    Engine(const ncclUniqueId& id, int ranks, int rank, int device, const std::array<char, 16>& uuid)
        : rendezvous(id, ranks, rank, uuid), device_(device) {}

    /// On a stream's thread. Returns when the launch is done or the communicator released; an operation whose peer is
    /// gone stays where it is until then, as on a GPU.
    void run(const Launch& launch);

    /// Ends everything that waits, here; peers learn it as an error of theirs.
    void release();
    bool is_released() const { return released_; }
    bool is_idle() const { return done_ == issued; }  ///< all launches are over
    int running() const { return running_; }

    /// The first failure stays.
    void fail(ncclResult_t result, const std::string& why);
    ncclResult_t failure() const { return failure_; }
    std::string last_error() const;
    /// Looks for peers that died or aborted, and fails then.
    void look_for_peers();

    Rendezvous rendezvous;
    std::atomic<std::uint64_t> issued = 0;  ///< launches

private:
    void run_collective(const Collective& collective);
    void run_messages(const std::vector<Message>& messages);
    template <class Done>
    bool wait_until(Done&& done);
    template <class F>
    bool wait_for_all(F&& value, std::uint64_t least);
    void agree_on(const CollectiveCall& call);

    int device_;
    std::atomic<bool> released_ = false;
    std::atomic<std::uint64_t> done_ = 0;
    std::atomic<int> running_ = 0;
    std::atomic<ncclResult_t> failure_ = ncclSuccess;
    mutable std::mutex mutex_;
    std::string last_error_;
};

}  // namespace lockstep::nccl_double
