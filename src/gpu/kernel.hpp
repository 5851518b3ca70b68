// A kernel: one op of the graph bound to device addresses, enqueued many times without allocating.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "step/global_place.hpp"
#include "step/op.hpp"

namespace lockstep::gpu {

/// Where an operand is on the device and what it holds. channels_last: [n, h, w, c] of an image, [out, kh, kw, in] of a
/// convolution's weight; opaque orders are channels_last here.
struct Operand : step::Place {
    void* data = nullptr;
    DType dtype = DType::fp32;
    step::Layout layout = step::Layout::row_major;

    std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(size_of(dtype).value); }
};
struct Output : Operand {
    step::Access access = step::Access::overwrite;
};
struct Operands {
    std::vector<Operand> in;
    std::vector<Output> out;
};

/// When a kernel runs: dropout draws anew each step, accumulation starts anew in micro-batch 0.
struct Moment {
    std::int64_t step = 0;
    std::int32_t micro_batch = 0;
};

inline bool adds(step::Access access, const Moment& moment) {
    return access == step::Access::accumulate ||
           (access == step::Access::accumulate_micro_batches && moment.micro_batch > 0);
}

inline bool can_add(step::Access access) {
    return access == step::Access::accumulate || access == step::Access::accumulate_micro_batches;
}

/// enqueue() starts work on a stream and returns; it never waits for the device and never allocates.
class Kernel {
public:
    virtual ~Kernel() = default;
    virtual void enqueue(const Moment& moment, cudaStream_t stream) = 0;
    /// Device memory it needs while it runs; kernels of one stream share a block.
    virtual std::int64_t workspace_bytes() const { return 0; }
    /// Called once before the first enqueue, with a device block of at least workspace_bytes(), aligned to 256 bytes.
    virtual void bind_workspace(std::byte* workspace) { (void)workspace; }
    /// What a library chose for it, for the record: "cuBLASLt algorithm 21, tile 128x128"; empty for own kernels.
    virtual std::string algorithm() const { return {}; }
};

/// A kernel that is one function of the moment and the stream.
template <class F>
class FunctionKernel final : public Kernel {
public:
    explicit FunctionKernel(F f) : f_(std::move(f)) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override { f_(moment, stream); }

private:
    F f_;
};
template <class F>
std::unique_ptr<Kernel> make_function_kernel(F f) {
    return std::make_unique<FunctionKernel<F>>(std::move(f));
}

}  // namespace lockstep::gpu
