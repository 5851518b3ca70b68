// What was measured of a GPU and of the wires between GPUs. Nothing here needs CUDA's headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "step/op.hpp"

namespace lockstep::gpu {

/// C = A B of n x n matrices.
struct ProductRate {
    MathType math = MathType::fp32;
    std::int64_t n = 0;
    FlopRate rate;
    std::string algorithm;
};

/// A convolution of ResNet-50: "layer2 3x3".
struct ConvolutionRate {
    std::string name;
    step::Pass pass = step::Pass::forward;
    MathType math = MathType::fp32;
    FlopRate rate;
    std::string algorithm;
    Flops work;
    std::int64_t batch = 0;
    std::int64_t image_size = 0;  ///< of the network's images
};

/// Attention without mask and dropout, 16 heads of 64; flops as step::Op counts them.
struct AttentionRate {
    step::Pass pass = step::Pass::forward;
    MathType math = MathType::fp16;
    FlopRate rate;
    std::string algorithm;
};

struct DeviceMeasurement {
    std::vector<ProductRate> products;          ///< by math, then size
    std::vector<ConvolutionRate> convolutions;  ///< by math, then layer, then pass
    std::vector<AttentionRate> attention;       ///< of halves: by math, then pass
    Bandwidth copy;                             ///< read and written, by the driver's copy inside the device
    Bandwidth add;                              ///< read and written, by an own kernel: c = a + b in fp32
    Bandwidth host_to_device, device_to_host;   ///< of pinned memory
    Seconds launch;                             ///< host time to enqueue a kernel
    Seconds kernel;                             ///< device time of a kernel that does next to nothing, in a row of such
    Seconds took;
};

/// One collective of a buffer, as nccl-tests counts it (the whole of it, also of an all-gather); the slowest rank's
/// time.
struct CollectiveTime {
    step::CollectiveKind kind = step::CollectiveKind::all_reduce;
    Bytes buffer;
    Seconds time;
};

struct CollectiveMeasurement {
    int ranks = 1;
    std::vector<CollectiveTime> times;  ///< by kind, then size; none of one rank
    Seconds took;
};

}  // namespace lockstep::gpu
