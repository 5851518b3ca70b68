// The kernels whose rates describe a host, on memory of their own.
#pragma once

#include <memory>

#include "base/units.hpp"
#include "cpu/arena.hpp"
#include "cpu/kernel.hpp"

namespace lockstep::cpu {

class OneDnn;

/// One kernel, its operands and its scratch.
struct BenchmarkKernel {
    std::unique_ptr<Arena> memory;
    std::unique_ptr<Kernel> kernel;
    Flops flops;  ///< of one run
    Bytes bytes;  ///< moved by one run at least
};

BenchmarkKernel product_kernel(OneDnn& library, std::int64_t n, DType dtype);
BenchmarkKernel convolution_kernel(OneDnn& library);
BenchmarkKernel attention_kernel(OneDnn& library);
BenchmarkKernel streaming_kernel(OneDnn& library);

}  // namespace lockstep::cpu
