// A short measurement of what the ranks of this host can do, for the host's machine description.
#pragma once

#include <optional>

#include "base/units.hpp"
#include "world/world.hpp"

namespace lockstep::cpu {

/// Rates of one rank while all ranks of the measuring world work; the slowest rank's where they differ.
struct HostMeasurement {
    int threads_per_rank = 1;
    int measured_ranks = 1;
    FlopRate gemm_fp32;                 ///< of a product of 1024 x 1024 matrices
    std::optional<FlopRate> gemm_bf16;  ///< where the processor has native bf16 products
    double convolution_share = 0;       ///< rate of a 3x3 convolution of 64 channels over gemm_fp32
    double attention_share = 0;         ///< rate of 8 heads of 64 over 512 tokens over gemm_fp32
    Bandwidth memory;                   ///< read and write, streaming
    Seconds op_overhead;                ///< to run a 16 x 16 matrix product and stamp its times
    Bandwidth all_reduce_bus;     ///< 2 (n - 1) / n bytes / time of a 16 MiB all-reduce, progressed by tests; 0 alone
    Seconds all_reduce_latency;   ///< of an 8-byte all-reduce
    double compute_slowdown = 0;  ///< 1 - (product rate beside all-reduces) / (rate alone), at least 0
    Seconds took;
};

/// Takes about 2 seconds on `threads` OpenMP threads per rank. Collective; all ranks return equal figures.
HostMeasurement measure_host(world::World& world, int threads);

}  // namespace lockstep::cpu
