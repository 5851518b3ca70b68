// Batch norm by cuDNN and by own kernels, beside the CPU's.
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using step::Layout;
using step::Norm;
using step::Pass;

/// An image's norm, or, without space, one of features alone.
struct Batch {
    std::int64_t rows, features, height = 1, width = 1;
    Norm norm(Pass pass) const { return {model::Norm::Kind::batch, rows, features, height * width, 1e-5, pass}; }
    Shape shape() const { return height * width > 1 ? Shape{rows, features, height, width} : Shape{rows, features}; }
    Layout layout() const { return height * width > 1 ? Layout::channels_last : Layout::row_major; }
};
const Batch batches[] = {{4, 8, 5, 3}, {3, 5, 4, 4}, {64, 16}, {33, 7}, {2, 64, 1, 2}, {1, 24, 40, 9}};

struct Types {
    DType image, parameters;
};
/// As precisions have them: fp32, fp16-amp, bf16.
constexpr Types all_types[] = {{DType::fp32, DType::fp32}, {DType::fp16, DType::fp32}, {DType::bf16, DType::bf16}};

/// Far from zero compared with its spread, as sums of squares dislike it.
Values shifted(std::int64_t n, std::uint64_t stream) {
    Values values = normal_values(n, stream);
    for (float& value : values) value = value * 0.5F + 3;
    return values;
}

Slot image(const Batch& b, Values values, DType dtype) { return slot(b.shape(), std::move(values), dtype, b.layout()); }
Slot row(std::int64_t n, std::uint64_t stream, DType dtype, Access access = Access::overwrite) {
    return slot({n}, normal_values(n, stream), dtype, Layout::row_major, access);
}

Case forward(const Batch& b, Types types, bool has_shift = true, bool has_running = true) {
    const std::int64_t n = b.shape().elements(), f = b.features;
    Case c;
    c.op = b.norm(Pass::forward);
    c.in = {image(b, shifted(n, 1), types.image), row(f, 2, types.parameters)};
    if (has_shift) c.in.push_back(row(f, 3, types.parameters));
    c.out = {image(b, {}, types.image), result({f}), result({f})};
    if (has_running) {
        c.out.push_back(row(f, 4, DType::fp32));
        c.out.push_back(row(f, 5, DType::fp32));
    }
    c.moments = {{0, 0}, {0, 1}};
    c.tolerance = 4;
    return c;
}

Case backward(const Batch& b, Types types, bool has_shift = true, Access access = Access::overwrite) {
    const std::int64_t n = b.shape().elements(), f = b.features;
    Case c;
    c.op = b.norm(Pass::backward_data);
    const Results statistics = run_on_cpu(forward(b, types));
    c.in = {image(b, normal_values(n, 6), types.image), image(b, shifted(n, 1), types.image),
            row(f, 2, types.parameters), slot({f}, statistics[0][1]), slot({f}, statistics[0][2])};
    c.out = {image(b, {}, types.image), row(f, 7, types.parameters, access)};
    if (has_shift) c.out.push_back(row(f, 8, types.parameters, access));
    c.moments = {{0, 0}, {0, 1}, {1, 0}};
    c.tolerance = std::sqrt(static_cast<float>(n / f)) * 4;
    return c;
}

TEST(GpuBatchNorm, normalises_and_keeps_statistics_as_the_cpu_does) {
    for (const Batch& b : batches)
        for (const Types types : all_types) expect_parity(forward(b, types));
}

TEST(GpuBatchNorm, needs_neither_shift_nor_running_statistics) {
    for (const Types types : all_types) {
        expect_parity(forward(batches[0], types, false));
        expect_parity(forward(batches[0], types, true, false));
        expect_parity(forward(batches[3], types, false, false));
        expect_parity(backward(batches[0], types, false));
    }
}

TEST(GpuBatchNorm, sends_gradients_back) {
    for (const Batch& b : batches)
        for (const Types types : all_types) expect_parity(backward(b, types));
}

TEST(GpuBatchNorm, adds_gradients_of_parameters_up_over_micro_batches) {
    for (const Batch& b : {batches[0], batches[2]})
        for (const Types types : all_types)
            for (const Access access : {Access::accumulate, Access::accumulate_micro_batches})
                expect_parity(backward(b, types, true, access));
}

TEST(GpuBatchNorm, does_not_lose_a_small_spread_around_a_large_mean) {
    // var = E[(x - pivot)^2] - E[x - pivot]^2 keeps what E[x^2] - E[x]^2 loses: a spread of 1/8 around 1000.
    const std::int64_t rows = 256, features = 8;
    Case c = forward({rows, features}, all_types[0]);
    Values x = normal_values(rows * features, 1);
    for (float& value : x) value = 1000 + value / 8;
    c.in[0] = slot({rows, features}, x);
    const Values inverse = run_on_gpu(c)[0][2];
    for (std::int64_t f = 0; f < features; ++f) {
        double mean = 0, variance = 0;
        for (std::int64_t r = 0; r < rows; ++r) mean += x[static_cast<std::size_t>(r * features + f)] / double{rows};
        for (std::int64_t r = 0; r < rows; ++r)
            variance += std::pow(x[static_cast<std::size_t>(r * features + f)] - mean, 2) / double{rows};
        const double expected = 1 / std::sqrt(variance + 1e-5);
        EXPECT_NEAR(inverse[static_cast<std::size_t>(f)], expected, 1e-3 * expected);
    }
}

TEST(GpuBatchNorm, is_cudnns_where_it_is_fast_and_certain) {
    const auto algorithm = [](const Case& c) {
        std::deque<DeviceTensor> tensors;
        Operands o;
        for (const Slot& s : c.in) o.in.push_back(tensors.emplace_back(s).operand());
        for (const Slot& s : c.out) o.out.push_back({tensors.emplace_back(s).operand(), s.access});
        BlasLt blas;
        Dnn dnn;
        return make_kernel(c.named(), o, {blas, dnn, 1})->algorithm();
    };
    EXPECT_EQ(algorithm(forward(batches[0], all_types[0])), "cuDNN batch norm, spatial");
    EXPECT_EQ(algorithm(forward(batches[0], all_types[1])), "cuDNN batch norm, spatial persistent");
    EXPECT_EQ(algorithm(backward(batches[0], all_types[1])), "cuDNN batch norm, spatial persistent");
    EXPECT_EQ(algorithm(forward(batches[0], all_types[2])), "");
    EXPECT_EQ(algorithm(forward(batches[2], all_types[0])), "");
}

}  // namespace
}  // namespace lockstep::gpu::testing
