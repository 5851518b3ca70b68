// Communicators behind their handles: which stage they are in, and what they still have to put on streams.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gpu_double/nccl/kernel.hpp"

namespace lockstep::nccl_double {

/// As NCCL documents it, a non-blocking communicator is in progress until someone asks and hears that it is not: what
/// was issued goes on its stream then, no sooner.
struct Communicator {
    enum class Stage { starting, ready, finalizing, finalized };
    struct Pending {
        Launch launch;
        cudaStream_t stream = nullptr;
    };

    int ranks = 1, rank = 0, device = 0, ordinal = 0;
    bool is_blocking = true;
    std::shared_ptr<Engine> engine;  ///< null when a test wished that this rank never comes
    Stage stage = Stage::starting;
    bool hangs = false;
    std::vector<Pending> pending;
    bool was_asked = false;  ///< about what is pending
    std::atomic<bool> is_in_call = false;

    /// State; makes progress.
    ncclResult_t poll();
    /// Until it is no longer in progress.
    ncclResult_t poll_to_the_end();
    void add(Pending work);
    void begin_to_finalize();
    std::string describe() const;

private:
    ncclResult_t start();
    ncclResult_t post();
};

ncclComm_t add_communicator(std::shared_ptr<Communicator> communicator);
/// Leaves the communicator: peers see it as destroyed, or as aborted. Its work on streams ends.
enum class Leave { destroyed, aborted };
void remove_communicator(ncclComm_t handle, Leave how);
/// Makes its work end, here; nothing is freed.
void release_communicator(ncclComm_t handle);
/// Reports a misuse when other communicators' kernels keep the device of `handle` busy: the real ncclCommAbort frees
/// memory, which waits for them.
void expect_device_to_come_free(ncclComm_t handle);

/// A call with a communicator. Ends the process when there is none, or when another thread is in a call with it: NCCL
/// is not thread-safe.
class Call {
public:
    Call(ncclComm_t handle, const char* function);
    ~Call() { communicator_->is_in_call = false; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    Communicator* operator->() const { return communicator_.get(); }
    Communicator& operator*() const { return *communicator_; }

private:
    std::shared_ptr<Communicator> communicator_;
};

/// What ncclGetLastError tells: of the process, as NCCL keeps it.
void set_last_error(const std::string& text);
/// Sets the last error and returns `result`.
ncclResult_t refuse(ncclResult_t result, const std::string& text);
/// Of the communicator when it failed, else the process's. The text stays until the thread's next call.
const char* last_error(ncclComm_t handle);

}  // namespace lockstep::nccl_double
