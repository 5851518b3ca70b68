// Convolutions beside the CPU's, and what is asked of cuDNN and kept.
#include <gmock/gmock.h>

#include "base/error.hpp"
#include "gpu/parity.hpp"
#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using step::Convolution;
using step::Layout;
using step::Pass;

/// n, in channels, height, width, out channels, kernel, stride, padding, groups
const Convolution shapes[] = {
    {2, 3, 9, 7, 8, 3, 1, 1, 1},    // of an image's three colours
    {2, 8, 8, 8, 16, 1, 1, 0, 1},   // pointwise
    {1, 4, 11, 11, 6, 3, 2, 1, 1},  // strided, one row of pixels left over
    {1, 3, 13, 13, 4, 7, 2, 3, 1},  // as ResNet begins
    {2, 6, 6, 6, 9, 3, 1, 1, 3},    // groups
    {1, 5, 6, 6, 5, 3, 1, 0, 5},    // each channel alone
    {1, 8, 7, 7, 8, 1, 2, 0, 1},    // pointwise and strided: a shortcut
};

Shape image_shape(const Convolution& c) { return {c.n, c.in_channels, c.height, c.width}; }
Shape result_shape(const Convolution& c) { return {c.n, c.out_channels, c.out_height(), c.out_width()}; }
Shape weight_shape(const Convolution& c) { return {c.out_channels, c.in_channels / c.groups, c.kernel, c.kernel}; }

Slot values(Shape shape, std::uint64_t stream, DType dtype, Access access = Access::overwrite) {
    const std::int64_t n = shape.elements();
    return slot(std::move(shape), normal_values(n, stream), dtype, Layout::channels_last, access);
}

Case forward(const Convolution& c, DType dtype) {
    Case made;
    made.op = c;
    made.in = {values(image_shape(c), 1, dtype), values(weight_shape(c), 2, dtype)};
    made.out = {values(result_shape(c), 3, dtype)};
    made.tolerance = std::sqrt(static_cast<float>(c.in_channels / c.groups * c.kernel * c.kernel));
    return made;
}
Case backward_data(Convolution c, DType dtype) {
    c.pass = Pass::backward_data;
    Case made;
    made.op = c;
    made.in = {values(result_shape(c), 1, dtype), values(weight_shape(c), 2, dtype)};
    made.out = {values(image_shape(c), 3, dtype)};
    made.tolerance = std::sqrt(static_cast<float>(c.out_channels / c.groups * c.kernel * c.kernel));
    return made;
}
Case backward_weights(Convolution c, DType dtype, Access access = Access::overwrite) {
    c.pass = Pass::backward_weights;
    Case made;
    made.op = c;
    made.in = {values(result_shape(c), 1, dtype), values(image_shape(c), 2, dtype)};
    made.out = {values(weight_shape(c), 3, dtype, access)};
    made.tolerance = std::sqrt(static_cast<float>(c.n * c.out_height() * c.out_width()));
    return made;
}
/// Once overwriting and three times adding, over two steps.
Case accumulating(Case c) {
    c.moments = {{0, 0}, {0, 1}, {0, 2}, {1, 0}};
    c.tolerance *= 3;
    return c;
}

TEST(GpuConvolution, convolves_forward_as_the_cpu_does) {
    for (const Convolution& c : shapes)
        for (const DType dtype : float_types) expect_parity(forward(c, dtype));
}

TEST(GpuConvolution, sends_gradients_back_to_the_image) {
    for (const Convolution& c : shapes)
        for (const DType dtype : float_types) expect_parity(backward_data(c, dtype));
}

TEST(GpuConvolution, makes_the_weights_gradients) {
    for (const Convolution& c : shapes)
        for (const DType dtype : float_types) expect_parity(backward_weights(c, dtype));
}

TEST(GpuConvolution, adds_a_bias_to_each_channel) {
    for (const DType dtype : float_types) {
        Case c = forward(shapes[0], dtype);
        c.in.push_back(slot({8}, normal_values(8, 4), dtype));
        expect_parity(c);
    }
}

TEST(GpuConvolution, sums_the_gradient_of_the_bias) {
    for (const DType dtype : float_types) {
        Case c = backward_weights(shapes[2], dtype);
        c.out.push_back(slot({6}, normal_values(6, 4), dtype));
        expect_parity(c);
    }
}

TEST(GpuConvolution, adds_gradients_of_weights_up_over_micro_batches) {
    for (const DType dtype : float_types)
        for (const Access access : {Access::accumulate, Access::accumulate_micro_batches}) {
            Case c = backward_weights(shapes[2], dtype, access);
            c.out.push_back(slot({6}, normal_values(6, 4), dtype, Layout::row_major, access));
            expect_parity(accumulating(c));
        }
}

TEST(GpuConvolution, rounds_its_factors_to_10_bits_in_tf32) {
    Case c = forward(shapes[1], DType::fp32);
    c.math = MathType::tf32;
    c.tolerance *= 0x1p-10F / 1e-5F;
    expect_parity(c);
    EXPECT_NE(run_on_cpu(c)[0][0], run_on_gpu(c)[0][0]);
}

/// Operands of a forward pass for convolutions that are only made.
struct Made {
    explicit Made(const Convolution& c, DType dtype = DType::fp16, Layout layout = Layout::channels_last)
        : convolution(c),
          x(slot(image_shape(c), {}, dtype, layout)),
          w(slot(weight_shape(c), {}, dtype, layout)),
          y(slot(result_shape(c), {}, dtype, layout)) {
        o = {{x.operand(), w.operand()}, {{y.operand()}}};
    }
    Convolution convolution;
    DeviceTensor x, w, y;
    Operands o;
};

TEST(GpuConvolution, takes_the_first_engine_within_the_workspace_that_rounds_no_more_than_its_math) {
    // The double proposes engine 5 with 1 GiB of workspace, 6 with tensor cores, 7 without.
    BlasLt blas;
    Dnn dnn;
    const KernelSetup setup{blas, dnn, 1};
    const Made half(shapes[1]), single(shapes[1], DType::fp32);
    const auto engine = [&](const Made& made, MathType math) {
        return make_convolution(made.convolution, math, made.o, setup)->algorithm();
    };
    EXPECT_EQ(engine(half, MathType::fp16), "cuDNN engine 6");
    EXPECT_EQ(engine(single, MathType::tf32), "cuDNN engine 6");
    EXPECT_EQ(engine(single, MathType::fp32), "cuDNN engine 7");
}

TEST(GpuConvolution, takes_the_fallback_when_no_plan_of_the_heuristics_can_be_made) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL",
                        "cudnnBackendFinalize.plan:1:3000,cudnnBackendFinalize.plan:2:3000,"
                        "cudnnBackendFinalize.plan:3:3000");
    BlasLt blas;
    Dnn dnn;
    const Made made(shapes[1]);
    EXPECT_EQ(make_convolution(made.convolution, MathType::fp16, made.o, {blas, dnn, 1})->algorithm(),
              "cuDNN engine 1");
}

TEST(GpuConvolution, makes_a_plan_once_per_shape) {
    // Were the second kernel to make a plan of its own, that plan would fail.
    BlasLt blas;
    Dnn dnn;
    const KernelSetup setup{blas, dnn, 1};
    const Made made(shapes[1]);
    const auto first = make_convolution(made.convolution, MathType::fp16, made.o, setup);
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "cudnnBackendFinalize.plan:1:3000");
    const auto again = make_convolution(made.convolution, MathType::fp16, made.o, setup);
    EXPECT_EQ(again->algorithm(), "cuDNN engine 6");
    EXPECT_EQ(first->workspace_bytes(), again->workspace_bytes());
}

std::string message_of(const Made& made, MathType math) {
    BlasLt blas;
    Dnn dnn;
    try {
        make_convolution(made.convolution, math, made.o, {blas, dnn, 1});
    } catch (const Error& error) { return error.what(); }
    return "";
}

TEST(GpuConvolution, refuses_what_it_does_not_have) {
    EXPECT_THAT(message_of(Made(shapes[1], DType::fp32, Layout::row_major), MathType::fp32),
                ::testing::HasSubstr("must be channels-last"));
    EXPECT_THAT(message_of(Made(shapes[1]), MathType::fp8), ::testing::HasSubstr("use precision bf16"));
    const Variable fail("LOCKSTEP_DOUBLE_FAIL",
                        "cudnnBackendFinalize.plan:1:3000,cudnnBackendFinalize.plan:2:3000,"
                        "cudnnBackendFinalize.plan:3:3000,cudnnBackendFinalize.plan:4:3000");
    EXPECT_THAT(message_of(Made(shapes[1]), MathType::fp16),
                ::testing::HasSubstr("cuDNN has no engine for this fp16 forward convolution of 2 x 8 x 8 x 8"));
}

}  // namespace
}  // namespace lockstep::gpu::testing
