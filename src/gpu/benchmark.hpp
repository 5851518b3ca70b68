// A short measurement of what a GPU can do, for its machine description.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/measurement.hpp"

namespace lockstep::gpu {

/// Sizes are the largest: each figure is measured at sizes that grow, until the next would take too long.
struct BenchmarkOptions {
    std::vector<std::int64_t> product_sizes = {64, 128, 256, 512, 1024, 2048, 4096, 8192};
    std::int64_t convolution_batch = 64;
    std::int64_t image_size = 224;                        ///< of the network whose convolutions are measured
    std::int64_t attention_seq = 2048;                    ///< tokens of a sequence; 0: attention isn't measured
    std::int64_t buffer_bytes = std::int64_t{512} << 20;  ///< of memory and copies: beyond any cache
    Seconds budget{0.05};                                 ///< of each figure
    Seconds longest{0.1};                                 ///< that a single run may be expected to take
};

/// Of the calling thread's device, in about 5 s; needs four buffers' memory. Products are kept of all sizes that were
/// measured, of all else the largest. What the device or a library doesn't have (tf32 and bf16 before Ampere) is left
/// out. Throws RuntimeError when the device fails.
DeviceMeasurement measure_device(const BenchmarkOptions& options = {});

}  // namespace lockstep::gpu
