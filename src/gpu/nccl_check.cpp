#include "gpu/nccl_check.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.hpp"

namespace lockstep::gpu {
namespace {

const char* name_of(ncclResult_t result) {
    switch (result) {
        case ncclSuccess: return "ncclSuccess";
        case ncclUnhandledCudaError: return "ncclUnhandledCudaError";
        case ncclSystemError: return "ncclSystemError";
        case ncclInternalError: return "ncclInternalError";
        case ncclInvalidArgument: return "ncclInvalidArgument";
        case ncclInvalidUsage: return "ncclInvalidUsage";
        case ncclRemoteError: return "ncclRemoteError";
        case ncclInProgress: return "ncclInProgress";
        default: return "of a newer NCCL";
    }
}

}  // namespace

const char* advice_on(ncclResult_t result) {
    switch (result) {
        case ncclRemoteError: return "; another rank died or gave up: its own message comes first";
        case ncclInvalidUsage: return "; each rank needs a GPU of its own: NCCL_DEBUG=WARN tells what NCCL found";
        case ncclSystemError:
        case ncclInternalError:
            return "; NCCL_DEBUG=WARN tells which call of the system or the network failed (often: the network "
                   "interface, see NCCL_SOCKET_IFNAME, or a full /dev/shm)";
        case ncclUnhandledCudaError:
            return "; an earlier kernel may have failed: run with NCCL_DEBUG=WARN, or under compute-sanitizer";
        default: return "";
    }
}

std::string describe_nccl(ncclResult_t result, ncclComm_t comm) {
    const char* last = ncclGetLastError(comm);
    std::string text = fmt::format("{} {} ({}", static_cast<int>(result), name_of(result), ncclGetErrorString(result));
    if (last != nullptr && *last != '\0') text += fmt::format("; NCCL's last error: {}", last);
    return text + ")";
}

std::string place_in_source(const std::source_location& where) {
    return fmt::format("{}:{}", std::filesystem::path(where.file_name()).filename().string(), where.line());
}

ncclResult_t wait_while_in_progress(const std::function<ncclResult_t()>& state, Seconds limit) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::microseconds busy{200}, shortest{20}, longest{1000};
    const Clock::time_point start = Clock::now();
    auto pause = shortest;
    for (;;) {
        const ncclResult_t now = state();
        if (now != ncclInProgress) return now;
        const auto waited = Clock::now() - start;
        if (std::chrono::duration<double>(waited).count() > limit.value) return ncclInProgress;
        if (waited < busy) {
            std::this_thread::yield();  // operations are issued within microseconds
        } else {
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, longest);
        }
    }
}

void check_nccl(ncclResult_t result, const char* call, ncclComm_t comm, std::source_location where) {
    constexpr Seconds limit{300};
    if (result == ncclInProgress && comm != nullptr)
        result = wait_while_in_progress(
            [comm] {
                ncclResult_t state = ncclSuccess;
                const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
                return asked == ncclSuccess ? state : asked;
            },
            limit);
    if (result == ncclSuccess) return;
    throw RuntimeError(fmt::format("{} failed: {} at {}{}", call, describe_nccl(result, comm), place_in_source(where),
                                   advice_on(result)));
}

}  // namespace lockstep::gpu
