// The functions of nccl.h that lockstep calls.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>

#include "gpu_double/nccl/group.hpp"
#include "gpu_double/nccl/misuse.hpp"
#include "gpu_double/nccl/reduce.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::nccl_double {
namespace {

using gpu_double::double_call;
using gpu_double::Fate;
using Kind = CollectiveCall::Kind;

ncclResult_t injected(const char* function, const Fate& fate) {
    const auto code = static_cast<ncclResult_t>(fate.code_or(ncclSystemError));
    return refuse(code, fmt::format("{} failed as LOCKSTEP_DOUBLE_FAIL wished", function));
}

/// body() -> ncclResult_t, of a function that puts nothing on a stream.
template <class Body>
ncclResult_t plain(const char* function, Body&& body) {
    const Fate fate = double_call(function);
    if (fate.hangs) gpu_double::wait_forever();
    return fate.fails ? injected(function, fate) : body();
}

/// ncclSuccess when operations may be issued.
ncclResult_t ready(Communicator& c) {
    const ncclResult_t state = c.pending.empty() && c.stage == Communicator::Stage::ready ? c.poll() : ncclInProgress;
    if (state != ncclInProgress) return state;
    const char* const text = "Attempt to use communicator before the previous operation returned ncclSuccess";
    return refuse(ncclInvalidArgument, text);
}

/// What all operations check first.
ncclResult_t check(const char* function, ncclComm_t comm, ncclDataType_t type, cudaStream_t stream, const Fate& fate) {
    const Call call(comm, function);
    if (const ncclResult_t state = ready(*call); state != ncclSuccess) return state;
    if (size_of(type) == 0) return refuse(ncclInvalidArgument, fmt::format("{}: invalid type {}", function, int{type}));
    if (gpu_double::device_of(stream) != call->device)
        misuse("{} on a stream of device {} with a communicator of device {}", function, gpu_double::device_of(stream),
               call->device);
    if (!fate.fails) return ncclSuccess;
    const ncclResult_t result = injected(function, fate);
    call->engine->fail(result, last_error(nullptr));
    return result;
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

struct Sizes {
    std::size_t sent = 1, received = 1;          ///< in counts
    std::size_t own_sent = 0, own_received = 0;  ///< where this rank's part begins, in counts
};

ncclResult_t collective(const char* function, Kind kind, const void* send, void* receive, std::size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
    const Fate fate = double_call(function);
    ncclResult_t result = check(function, comm, type, stream, fate);
    if (result != ncclSuccess) {
        spoil_group(result);
        return result;
    }
    int ranks = 0, rank = 0;
    {
        const Call call(comm, function);
        ranks = call->ranks;
        rank = call->rank;
    }
    if (root < 0 || root >= ranks)
        return refuse(ncclInvalidArgument, fmt::format("{}: invalid root {}", function, root));
    if (op < 0 || op >= ncclNumOps) return refuse(ncclInvalidArgument, fmt::format("{}: invalid operation", function));
    if (count == 0) return ncclSuccess;

    const auto n = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
    Sizes sizes;
    if (kind == Kind::all_gather) sizes = {1, n, 0, r};
    if (kind == Kind::reduce_scatter) sizes = {n, 1, r, 0};
    const std::size_t part = count * size_of(type);
    const auto* const from = static_cast<const std::byte*>(send);
    auto* const to = static_cast<std::byte*>(receive);
    const bool sends = kind != Kind::broadcast || rank == root;
    if (sends &&
        !gpu_double::expect_device_range(from, part * sizes.sent, fmt::format("{}: sendbuff", function).c_str()))
        return ncclInvalidArgument;
    if (!gpu_double::expect_device_range(to, part * sizes.received, fmt::format("{}: recvbuff", function).c_str()))
        return ncclInvalidArgument;
    const bool is_in_place = from + sizes.own_sent * part == to + sizes.own_received * part;
    if (sends && !is_in_place && overlap(from, part * sizes.sent, to, part * sizes.received))
        misuse("{}: sendbuff and recvbuff overlap, and not as an operation in place", function);
    const CollectiveCall what{kind, type, op, root, count};
    return add_collective(comm, {what, from, to}, stream, fate.hangs);
}

ncclResult_t message(const char* function, Message::Way way, void* data, std::size_t count, ncclDataType_t type,
                     int peer, ncclComm_t comm, cudaStream_t stream) {
    const Fate fate = double_call(function);
    const ncclResult_t result = check(function, comm, type, stream, fate);
    if (result != ncclSuccess) {
        spoil_group(result);
        return result;
    }
    const int ranks = Call(comm, function)->ranks;
    if (peer < 0 || peer >= ranks)
        return refuse(ncclInvalidArgument, fmt::format("{}: invalid peer {}", function, peer));
    if (!gpu_double::expect_device_range(data, count * size_of(type), fmt::format("{}: the buffer", function).c_str()))
        return ncclInvalidArgument;
    return add_message(comm, {way, peer, static_cast<std::byte*>(data), {type, count}}, stream, fate.hangs);
}

ncclResult_t initialise(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank, const ncclConfig_t* config,
                        bool hangs) {
    if (comm == nullptr || ranks < 1 || rank < 0 || rank >= ranks)
        return refuse(ncclInvalidArgument, fmt::format("Invalid rank requested : {}/{}", rank, ranks));
    const ncclConfig_t expected = NCCL_CONFIG_INITIALIZER;
    if (config != nullptr && (config->size != expected.size || config->magic != expected.magic))
        return refuse(ncclInvalidArgument, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    if (is_in_group()) misuse("ncclCommInitRankConfig in a group is not modelled");
    auto made = std::make_shared<Communicator>();
    cudaDeviceProp properties;
    if (cudaGetDevice(&made->ordinal) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, made->ordinal) != cudaSuccess)
        return refuse(ncclUnhandledCudaError, "Cuda failure: no current device");
    made->ranks = ranks;
    made->rank = rank;
    made->device = gpu_double::current_device();
    made->is_blocking = config == nullptr || config->blocking != 0;
    made->hangs = hangs;
    std::array<char, 16> uuid{};
    std::memcpy(uuid.data(), properties.uuid.bytes, uuid.size());
    if (!hangs) made->engine = std::make_shared<Engine>(id, ranks, rank, made->device, uuid);
    *comm = add_communicator(made);
    if (!made->is_blocking) return ncclInProgress;
    const ncclResult_t result = made->poll_to_the_end();
    if (result != ncclSuccess) {
        set_last_error(made->engine->last_error());
        remove_communicator(*comm, Leave::aborted);
        *comm = nullptr;
    }
    return result;
}

}  // namespace
}  // namespace lockstep::nccl_double

using namespace lockstep::nccl_double;
using lockstep::gpu_double::double_call;
using lockstep::gpu_double::Fate;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    *version = 22809;
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
    switch (result) {
        case ncclSuccess: return "no error";
        case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
        case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case ncclRemoteError: return "remote process exited or there was a network error";
        case ncclInProgress: return "NCCL operation in progress";
        default: return "unknown result code";
    }
}

const char* ncclGetLastError(ncclComm_t comm) { return last_error(comm); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    return plain("ncclGetUniqueId", [&] {
        *id = Rendezvous::make_id();
        return ncclSuccess;
    });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
    const Fate fate = double_call("ncclCommInitRankConfig");
    if (!fate.fails) return initialise(comm, ranks, id, rank, config, fate.hangs);
    *comm = nullptr;
    return injected("ncclCommInitRankConfig", fate);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    const Fate fate = double_call("ncclCommFinalize");
    if (fate.fails) return injected("ncclCommFinalize", fate);
    const Call call(comm, "ncclCommFinalize");
    if (const ncclResult_t state = ready(*call); state != ncclSuccess) return state;
    call->begin_to_finalize();
    call->hangs = fate.hangs;
    return call->is_blocking ? call->poll_to_the_end() : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    return plain("ncclCommDestroy", [&] {
        if (comm == nullptr) return ncclSuccess;
        ncclResult_t result = ncclSuccess;
        {
            const Call call(comm, "ncclCommDestroy");
            if (call->stage == Communicator::Stage::finalizing || !call->pending.empty())
                misuse("ncclCommDestroy while the communicator ({}) is in progress", call->describe());
            if (call->stage == Communicator::Stage::ready) {
                call->begin_to_finalize();
                result = call->poll_to_the_end();
            }
        }
        remove_communicator(comm, Leave::destroyed);
        return result;
    });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    return plain("ncclCommAbort", [&] {
        if (comm == nullptr) return ncclSuccess;
        const Call call(comm, "ncclCommAbort");
        return add_abort(comm);
    });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
    const Fate fate = double_call("ncclCommGetAsyncError");
    const Call call(comm, "ncclCommGetAsyncError");
    if (fate.hangs) call->hangs = true;
    if (fate.fails) {
        const ncclResult_t result = injected("an operation in flight", fate);
        if (call->engine) call->engine->fail(result, last_error(nullptr));
    }
    *error = call->poll();
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    *count = Call(comm, "ncclCommCount")->ranks;
    return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    *rank = Call(comm, "ncclCommUserRank")->rank;
    return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
    *device = Call(comm, "ncclCommCuDevice")->ordinal;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
    return plain("ncclGroupStart", [] { return begin_group(); });
}

ncclResult_t ncclGroupEnd() {
    const Fate fate = double_call("ncclGroupEnd");
    if (fate.fails) spoil_group(injected("ncclGroupEnd", fate));
    return end_group(fate.hangs);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    return collective("ncclAllReduce", Kind::all_reduce, send, receive, count, type, op, 0, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    return collective("ncclReduceScatter", Kind::reduce_scatter, send, receive, count, type, op, 0, comm, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    return collective("ncclAllGather", Kind::all_gather, send, receive, count, type, ncclSum, 0, comm, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    return collective("ncclBroadcast", Kind::broadcast, send, receive, count, type, ncclSum, root, comm, stream);
}
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return message("ncclSend", Message::Way::send, const_cast<void*>(data), count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    return message("ncclRecv", Message::Way::receive, data, count, type, peer, comm, stream);
}
}
