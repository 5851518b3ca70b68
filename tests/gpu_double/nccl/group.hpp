// Groups of NCCL calls: what a thread has said since ncclGroupStart.
#pragma once

#include <nccl.h>

#include <functional>

#include "gpu_double/nccl/communicator.hpp"

namespace lockstep::nccl_double {

/// Adds an operation of `communicator` to the calling thread's group; outside of one, issues it at once. ncclInProgress
/// when it is issued and the communicator is non-blocking.
ncclResult_t add_collective(ncclComm_t communicator, const Collective& collective, cudaStream_t stream, bool hangs);
ncclResult_t add_message(ncclComm_t communicator, const Message& message, cudaStream_t stream, bool hangs);
/// Aborts at the end of the group; outside of one, at once.
ncclResult_t add_abort(ncclComm_t communicator);

ncclResult_t begin_group();
/// `hangs`: what it issues never completes.
ncclResult_t end_group(bool hangs);
bool is_in_group();
/// The end of the group fails with this.
void spoil_group(ncclResult_t result);

}  // namespace lockstep::nccl_double
