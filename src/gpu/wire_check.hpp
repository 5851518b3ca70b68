// Sends known patterns over a communicator of NCCL and compares.
#pragma once

#include "gpu/nccl_communicator.hpp"

namespace lockstep::gpu {

/// All-reduce (sum), all-gather, reduce-scatter, all-to-all and a ring of messages between GPUs, of a few and of many
/// fp32 elements. Throws RuntimeError naming the communicator, this rank and the first wrong element. Collective.
void check_wire(NcclCommunicator& communicator);

}  // namespace lockstep::gpu
