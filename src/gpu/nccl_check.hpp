// Checks what NCCL calls return.
#pragma once

#include <nccl.h>

#include <functional>
#include <source_location>
#include <string>

#include "base/units.hpp"

namespace lockstep::gpu {

/// "5 ncclInvalidUsage (invalid usage; NCCL's last error: ...)". `comm` may be null.
std::string describe_nccl(ncclResult_t result, ncclComm_t comm);
/// What to do about it: "; ..." or nothing.
const char* advice_on(ncclResult_t result);
/// "nccl_communicator.cpp:31"
std::string place_in_source(const std::source_location& where);

/// Polls while state() is ncclInProgress: what it was in the end; ncclInProgress when `limit` has passed.
ncclResult_t wait_while_in_progress(const std::function<ncclResult_t()>& state, Seconds limit);

/// Throws RuntimeError "CALL failed: CODE NAME (text; NCCL's last error) at file:line; what to do" unless the call
/// succeeded. On ncclInProgress, a non-blocking communicator's answer, waits for `comm` to be done with it, 300 s at
/// most; nobody else may abort `comm` meanwhile (NcclCommunicator::issue is for those that are shared).
void check_nccl(ncclResult_t result, const char* call, ncclComm_t comm = nullptr,
                std::source_location where = std::source_location::current());

}  // namespace lockstep::gpu
