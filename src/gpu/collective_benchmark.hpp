// How long collectives of NCCL take by size.
#pragma once

#include <cstdint>

#include "gpu/measurement.hpp"
#include "gpu/nccl_communicator.hpp"

namespace lockstep::gpu {

struct CollectiveOptions {
    std::int64_t least_bytes = 8;
    std::int64_t most_bytes = std::int64_t{256} << 20;
    Seconds budget{0.03};  ///< of each figure
    Seconds longest{0.1};  ///< that a single collective may be expected to take: larger ones are left out
};

/// All-reduces and all-gathers of fp32 over `communicator`, whose ranks are those of `world`, one after another by
/// doubling sizes: the median of batches of collectives in a row. An all-gather takes half the steps of an all-reduce,
/// which tells the time of a step from what every collective costs. Throws RuntimeError when NCCL fails. Collective.
CollectiveMeasurement measure_collectives(world::World& world, NcclCommunicator& communicator,
                                          const CollectiveOptions& options = {});

}  // namespace lockstep::gpu
