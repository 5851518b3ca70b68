// A short measurement of what a GPU can do, for its machine description.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "step/op.hpp"

namespace lockstep::gpu {

struct BenchmarkOptions {
    std::vector<std::int64_t> product_sizes = {256, 512, 1024, 2048, 4096, 8192};
    std::int64_t convolution_batch = 64;
    std::int64_t image_size = 224;                        ///< of the network whose convolutions are measured
    std::int64_t buffer_bytes = std::int64_t{512} << 20;  ///< of memory and copies: beyond any cache
    Seconds budget{0.05};                                 ///< of each figure
};

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
};

struct DeviceMeasurement {
    std::vector<ProductRate> products;          ///< by math, then size
    std::vector<ConvolutionRate> convolutions;  ///< by math, then layer, then pass
    Bandwidth copy;                             ///< read and written, by the driver's copy inside the device
    Bandwidth add;                              ///< read and written, by an own kernel: c = a + b in fp32
    Bandwidth host_to_device, device_to_host;   ///< of pinned memory
    Seconds launch;                             ///< host time to enqueue a kernel
    Seconds kernel;                             ///< device time of a kernel that does next to nothing, in a row of such
    Seconds took;
};

/// Of the calling thread's device, in about 5 s; needs four buffers' memory. What the device or a library doesn't have
/// (tf32 and bf16 before Ampere) is left out. Throws RuntimeError when the device fails.
DeviceMeasurement measure_device(const BenchmarkOptions& options = {});

}  // namespace lockstep::gpu
