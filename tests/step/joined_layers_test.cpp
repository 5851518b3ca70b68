// Layers of several inputs and attention to a memory, as ops of a step.
#include <gtest/gtest.h>

#include "graphs.hpp"
#include "model/shipped.hpp"
#include "step/check.hpp"

namespace lockstep::step::test {
namespace {

/// Flops of the forward pass that products of matrices, convolutions and attention do.
double forward_products(const StepGraph& graph) {
    double sum = 0;
    for (const OpInstance& op : issued(graph)) {
        const std::string_view kind = kind_name(*op.op);
        const bool is_product = kind == "convolution" || kind == "gemm" || kind == "attention";
        if (op.op->phase == Phase::forward && is_product) sum += op.op->flops.value;
    }
    return sum;
}

TEST(JoinedLayers, steps_of_the_catalogue_do_the_products_that_their_models_count) {
    // 2 flops each, for a micro-batch of 2; biases and the softmax of attention add a few percent at most.
    for (const char* name : {"inception3", "resnext101-32x4d", "se-resnext101-32x4d", "transformer-big-wmt",
                             "transformer-xl-base", "transformer-xl-large"}) {
        SCOPED_TRACE(name);
        const model::Model model = load(name);
        const StepGraph graph = build(model);
        check(graph);
        const double expected = 2.0 * 2.0 * static_cast<double>(model::forward_multiply_adds(model));
        EXPECT_GE(forward_products(graph), expected);
        EXPECT_LE(forward_products(graph), 1.03 * expected);
    }
}

TEST(JoinedLayers, they_can_be_checked_with_unfused_attention_and_mixed_precision) {
    for (const char* name : {"transformer-big-wmt", "transformer-xl-large"}) {
        Options options{.accumulation = 2, .precision = Precision::fp16_amp};
        options.framework.attention = plan::AttentionAlgorithm::unfused;
        check(build(name, options));
    }
}

TEST(JoinedLayers, a_concatenation_is_one_slice_for_each_input_and_one_back) {
    const model::Model model = model::model_of(
        "input: [4, 8, 8]\n"
        "layers:\n"
        "  - {name: a, op: convolution, in: input, out: 6, kernel: 1}\n"
        "  - {name: b, op: convolution, in: input, out: 2, kernel: [1, 7], padding: [0, 3]}\n"
        "  - {name: cat, op: concatenate, in: [a, b, input]}\n"
        "  - {name: flat, op: flatten}\n"
        "  - {name: loss, op: softmax_loss}\n");
    const StepGraph graph = build(model, {.dp = 1});
    check(graph);
    // Three into the output; of the gradient only a's and b's: nothing trains before the input.
    EXPECT_EQ(count_kind(graph, "slice"), 3 + 2);
    // Of b: 2 x 8 x 8 rows of 2 of 12 channels, read and written once.
    for (const OpInstance& op : issued(graph))
        if (op.op->name == "cat.place1") { EXPECT_EQ(op.op->bytes, Bytes{2 * 4 * 2 * 64 * 2}); }
}

TEST(JoinedLayers, gradients_on_the_wire_can_have_the_type_of_computation) {
    // All 25.6 M gradients of ResNet-50 in fp16 under fp16-amp, in fp32 without it.
    for (const auto& [precision, size] : {std::pair{Precision::fp16_amp, 2.0}, std::pair{Precision::fp32, 4.0}}) {
        Options options{.precision = precision};
        options.framework.wire_as_computed = true;
        const StepGraph graph = build("resnet50", options);
        check(graph);
        double bytes = 0;
        for (const OpInstance& op : issued(graph))
            if (const auto* c = std::get_if<Collective>(&op.op->kind); c != nullptr && c->count > 1)
                bytes += static_cast<double>(c->count) * size_of(c->dtype).value;
        EXPECT_DOUBLE_EQ(bytes, size * 25'557'032);
    }
}

TEST(JoinedLayers, a_delay_of_the_framework_is_on_every_collective_of_gradients) {
    Options options;
    options.framework.collective_delay = Seconds{2.5e-3};
    const StepGraph graph = build("resnet50", options);
    for (const OpInstance& op : issued(graph))
        if (const auto* c = std::get_if<Collective>(&op.op->kind)) { EXPECT_EQ(c->delay, Seconds{2.5e-3}); }
}

}  // namespace
}  // namespace lockstep::step::test
