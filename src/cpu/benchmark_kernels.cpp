#include "cpu/benchmark_kernels.hpp"

#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/onednn.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

/// Places operands in one block, makes the kernel and gives it scratch behind them.
BenchmarkKernel bind(OneDnn& library, step::Compute op, Operands operands) {
    ScratchPlan plan;
    std::vector<std::int64_t> offsets;
    for (const Operand& o : operands.in) offsets.push_back(plan.add(o.bytes()));
    for (const Output& o : operands.out) offsets.push_back(plan.add(o.bytes()));
    BenchmarkKernel made;
    made.memory = std::make_unique<Arena>(plan.bytes(), "the host benchmark");
    made.memory->touch();
    std::size_t i = 0;
    for (Operand& o : operands.in) o.data = made.memory->data() + offsets[i++];
    for (Output& o : operands.out) o.data = made.memory->data() + offsets[i++];
    step::Op whole;
    whole.name = "host benchmark";
    whole.kind = std::move(op);
    made.kernel = make_kernel(whole, operands, {library, 1});
    return made;
}

/// Kernels with temporaries get an arena of their own, kept inside the wrapper.
class WithScratch final : public Kernel {
public:
    explicit WithScratch(std::unique_ptr<Kernel> inner)
        : inner_(std::move(inner)), scratch_(inner_->scratch_bytes(), "the host benchmark") {
        scratch_.touch();
        inner_->bind_scratch(scratch_.data());
    }
    void run(const Moment& moment) override { inner_->run(moment); }

private:
    std::unique_ptr<Kernel> inner_;
    Arena scratch_;
};

BenchmarkKernel finish(BenchmarkKernel made, Flops flops, Bytes bytes) {
    made.kernel = std::make_unique<WithScratch>(std::move(made.kernel));
    made.flops = flops;
    made.bytes = bytes;
    return made;
}

Operand operand(Shape shape, DType dtype = DType::fp32, Order order = Order::row_major) {
    Operand o;
    o.global = shape;
    o.runs = step::whole_runs(shape);
    o.shape = std::move(shape);
    o.dtype = dtype;
    o.order = order;
    return o;
}

}  // namespace

BenchmarkKernel product_kernel(OneDnn& library, std::int64_t n, DType dtype) {
    Operands o{{operand({n, n}, dtype), operand({n, n}, dtype)}, {{operand({n, n}, dtype)}}};
    const auto size = static_cast<double>(n);
    return finish(bind(library, step::Gemm{1, n, n, n}, std::move(o)), Flops{2 * size * size * size}, Bytes{});
}

BenchmarkKernel convolution_kernel(OneDnn& library) {
    const step::Convolution c{4, 64, 56, 56, 64, 3, 1, 1};
    const Order order = prefers_blocked_channels() ? Order::blocked8 : Order::channels_last;
    const Shape image{4, 64, 56, 56};
    Operand weight = operand({64, 64, 3, 3}, DType::fp32, Order::packed);
    weight.tensor = 0;
    Operands o{{operand(image, DType::fp32, order), weight}, {{operand(image, DType::fp32, order)}}};
    return finish(bind(library, c, std::move(o)), Flops{2.0 * 4 * 64 * 64 * 9 * 56 * 56}, Bytes{});
}

BenchmarkKernel attention_kernel(OneDnn& library) {
    step::Attention a;
    a.batch = 1;
    a.seq = 512;
    a.heads = a.kv_heads = 8;
    a.head_dim = 64;
    a.causal = false;
    Operands o{{operand({512, 1, 24 * 64})}, {{operand({512, 1, 512})}, {operand({1, 8, 512})}}};
    return finish(bind(library, a, std::move(o)), Flops{4.0 * 8 * 512 * 512 * 64}, Bytes{});
}

BenchmarkKernel streaming_kernel(OneDnn& library) {
    constexpr std::int64_t n = 12 << 20;  // 48 MiB in, 48 MiB out: beyond the caches of a few cores
    Operands o{{operand({n})}, {{operand({n})}}};
    step::Elementwise scale;
    scale.kind = step::Elementwise::Kind::scale;
    scale.count = n;
    scale.factor = 0.5;
    return finish(bind(library, scale, std::move(o)), Flops{}, Bytes{8.0 * n});
}

}  // namespace lockstep::cpu
