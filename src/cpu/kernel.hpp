// A kernel: one op of the graph bound to its operands' addresses, run many times without allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "step/global_place.hpp"
#include "step/op.hpp"

namespace lockstep::cpu {

/// Physical order of an operand: as step::Layout, and what this executor makes of it.
enum class Order {
    row_major,
    channels_last,
    blocked8,  ///< [n, c/8, h, w, 8]: what the AVX2 convolutions run fastest on
    packed     ///< a weight in the order its convolution chose
};

/// Where an operand is and what it holds.
struct Operand : step::Place {
    void* data = nullptr;
    DType dtype = DType::fp32;
    Order order = Order::row_major;
    std::int32_t tensor = -1;  ///< id in the graph, for packed orders

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

class Kernel {
public:
    virtual ~Kernel() = default;
    virtual void run(const Moment& moment) = 0;
    /// Temporary memory it needs while it runs; all kernels share one block.
    virtual std::int64_t scratch_bytes() const { return 0; }
    /// Called once before the first run, with a block of at least scratch_bytes(), aligned to 64 bytes.
    virtual void bind_scratch(std::byte* scratch) { (void)scratch; }
};

/// A kernel that is one function of the moment.
template <class F>
class FunctionKernel final : public Kernel {
public:
    explicit FunctionKernel(F f) : f_(std::move(f)) {}
    void run(const Moment& moment) override { f_(moment); }

private:
    F f_;
};
template <class F>
std::unique_ptr<Kernel> make_function_kernel(F f) {
    return std::make_unique<FunctionKernel<F>>(std::move(f));
}

}  // namespace lockstep::cpu
