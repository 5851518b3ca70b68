// Communicators of NCCL: made together by their ranks, never waited for without end, aborted from any thread.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "step/graph.hpp"
#include "world/world.hpp"

namespace lockstep::gpu {

/// What the ranks of a communicator tell one another before NCCL is called.
struct NcclMeeting {
    std::string name;                  ///< "dp"
    int member = 0;                    ///< this rank's place
    std::vector<std::string> members;  ///< "rank 3 (host n1, GPU 0)", in order
    ncclUniqueId id{};                 ///< of the first member; zero when there is one member only
    int size() const { return static_cast<int>(members.size()); }
};
/// "rank 3 (host n1, GPU 0)": `world`'s rank and the calling thread's device.
std::string describe_rank(const world::World& world);
/// Collective over the communicator's own world. `self`: what describe_rank says of this rank in the whole world.
NcclMeeting meet(world::World& members, const std::string& name, const std::string& self);

/// A non-blocking communicator on the calling thread's device; of one member, none at all (comm() is null). Ops of one
/// thread, the issuing one; abort(), throw_if_failed() and is_aborted() of any. NCCL allows no call to run while a
/// communicator is aborted, so that each is made under a lock and none blocks.
class NcclCommunicator {
public:
    /// Collective over the members. Throws RuntimeError when they are not all there within `timeout` (who waited for
    /// whom) or NCCL refuses. `timeout` also bounds every later wait.
    NcclCommunicator(NcclMeeting meeting, Seconds timeout);
    /// ncclCommFinalize, which its peers must reach too, and ncclCommDestroy; ncclCommAbort when the communicator has
    /// failed, an exception unwinds, or the peers don't come.
    ~NcclCommunicator();
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    const std::string& name() const { return meeting_.name; }
    int size() const { return meeting_.size(); }
    int member() const { return meeting_.member; }
    /// "rank 3 (host n1, GPU 0)", in order.
    const std::vector<std::string>& members() const { return meeting_.members; }
    /// What ncclCommInitRankConfig made; for tests and records. issue() gives it to those who enqueue.
    ncclComm_t comm() const { return comm_; }

    /// Calls f(ncclComm_t) -> ncclResult_t and waits until the work is on its stream (not until it is done there): with
    /// a non-blocking communicator NCCL issues it from a thread of its own, and nothing else may go onto the stream
    /// before. Throws RuntimeError "WHAT failed: ..." when NCCL fails, this is aborted or `timeout` passes.
    template <class F>
    void issue(const std::string& what, F&& f, std::source_location where = std::source_location::current()) {
        ncclResult_t result = ncclSuccess;
        {
            const std::lock_guard lock(mutex_);
            throw_if_aborted(what);
            result = f(comm_);
        }
        if (result != ncclSuccess) settle(result, what, where);
    }
    /// Waits until all work on the stream is done. Throws as throw_if_failed() does, and when `timeout` passes.
    void synchronize(cudaStream_t stream, const std::string& what,
                     std::source_location where = std::source_location::current());
    /// Throws RuntimeError with code, text and NCCL's last error when an operation failed that was issued before.
    void throw_if_failed(std::source_location where = std::source_location::current());

    /// Makes operations in flight end, wherever they wait. All ranks must do so, or their peers wait on. Only the first
    /// call does something. Communicators of one device: abort_all.
    void abort() noexcept;
    bool is_aborted() const { return is_aborted_.load(std::memory_order_acquire); }

private:
    friend void abort_all(const std::vector<std::unique_ptr<NcclCommunicator>>& communicators) noexcept;
    void initialise(std::source_location where);
    ncclResult_t state() const;
    void settle(ncclResult_t result, const std::string& what, std::source_location where);
    [[noreturn]] void fail(ncclResult_t result, const std::string& what, std::source_location where);
    void throw_if_aborted(const std::string& what) const;
    std::string describe(ncclResult_t result) const;
    std::string peers() const;
    std::string who() const;

    NcclMeeting meeting_;
    Seconds timeout_;
    int device_ = 0;
    int exceptions_at_start_;
    mutable std::mutex mutex_;  // around every call with comm_
    ncclComm_t comm_ = nullptr;
    std::atomic<bool> is_aborted_ = false;
    std::atomic<bool> has_failed_ = false;
};

/// Aborts together those that are not null: one after the other, the first would wait for a device that the others'
/// operations keep busy.
void abort_all(const std::vector<std::unique_ptr<NcclCommunicator>>& communicators) noexcept;

/// One communicator for each communication stream of the graph, by stream; null where this rank takes no part.
/// Collective over `world`, on the calling thread's device. Throws RuntimeError as NcclCommunicator does.
///
/// Order. NCCL may deadlock when kernels of several communicators are launched in different orders on different
/// devices, since one that waits for its peers keeps multiprocessors. Of lockstep's graphs holds:
/// - a rank issues all its ops from one thread, in the order of its class's program; so all ranks of a communicator
///   within a stage (dp, tp, cp, ep ...), which are of one class, launch in one order;
/// - stages have programs of their own: what they exchange (pp, tied embeddings) may be launched in another order
///   against a stage's other communication. step::check proves that no such graph hangs while the heads of all streams
///   can run at once; it proves nothing for a device that runs one NCCL kernel at a time.
/// So a device must have room for one kernel of each communicator (NCCL takes a few multiprocessors for each, 32 at
/// most: see NCCL_MAX_CTAS) and a hardware queue for each stream (CUDA_DEVICE_MAX_CONNECTIONS, default 8).
/// NCCL_LAUNCH_ORDER_IMPLICIT=1 (NCCL 2.26 or later) makes NCCL launch in the order of issue on each device, which
/// excludes a deadlock wherever the order is the same on all, that is without pipeline stages.
std::vector<std::unique_ptr<NcclCommunicator>> make_communicators(const step::StepGraph& graph, world::World& world,
                                                                  Seconds timeout);

}  // namespace lockstep::gpu
