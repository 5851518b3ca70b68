// Fused chains of element-wise ops: which ops, and how many bytes less.
#include "step/fusion.hpp"

#include <gtest/gtest.h>

#include <map>

#include "graphs.hpp"
#include "model/shipped.hpp"
#include "step/check.hpp"

namespace lockstep::step::test {
namespace {

const char* const residual =
    "input: [4, 8, 8]\n"
    "layers:\n"
    "  - {name: first, op: convolution, out: 6, kernel: 1}\n"
    "  - {name: conv, op: convolution, out: 6, kernel: 1}\n"
    "  - {name: bn, op: batch_norm}\n"
    "  - {name: add, op: add, in: [bn, first]}\n"
    "  - {name: relu, op: relu}\n"
    "  - {name: flat, op: flatten}\n"
    "  - {name: loss, op: softmax_loss}\n";

std::map<std::string, Op> ops_of(plan::ElementwiseFusion fusion) {
    Options options{.dp = 1};
    options.framework.elementwise_fusion = fusion;
    const StepGraph graph = build(model::model_of(residual), options);
    check(graph);
    std::map<std::string, Op> ops;
    for (const OpInstance& op : issued(graph)) ops[op.op->name] = *op.op;
    return ops;
}

// x: 2 samples of 6 x 8 x 8 fp32 = 3072 B. The norm's result and the sum are read by nobody else (their gradients need
// neither), so each is one write and one read less; relu's result has another reader.
TEST(Fusion, norm_addition_and_relu_are_one_kernel_that_moves_each_result_once) {
    const auto alone = ops_of(plan::ElementwiseFusion::none);
    const auto fused = ops_of(plan::ElementwiseFusion::chains);
    const Bytes x{3072};
    EXPECT_FALSE(fused.at("bn.forward").is_fused);
    EXPECT_TRUE(fused.at("add.forward").is_fused);
    EXPECT_TRUE(fused.at("relu.forward").is_fused);
    EXPECT_EQ(alone.at("bn.forward").bytes - fused.at("bn.forward").bytes, x);
    EXPECT_EQ(alone.at("add.forward").bytes - fused.at("add.forward").bytes, 2 * x);
    EXPECT_EQ(alone.at("relu.forward").bytes - fused.at("relu.forward").bytes, x);
    EXPECT_EQ(fused.at("relu.forward").host_time, Seconds{0});
}

TEST(Fusion, the_gradient_of_relu_and_of_the_norm_behind_it_are_one_kernel_too) {
    const auto fused = ops_of(plan::ElementwiseFusion::chains);
    EXPECT_TRUE(fused.at("bn.backward").is_fused);
    EXPECT_FALSE(fused.at("conv.backward_data").is_fused);
}

TEST(Fusion, products_of_matrices_are_never_fused_and_nothing_is_without_the_trait) {
    for (const auto& [name, op] : ops_of(plan::ElementwiseFusion::none)) EXPECT_FALSE(op.is_fused) << name;
    for (const auto& [name, op] : ops_of(plan::ElementwiseFusion::chains)) {
        const std::string_view kind = kind_name(op);
        if (kind == "convolution" || kind == "gemm" || kind == "softmax_loss") { EXPECT_FALSE(op.is_fused) << name; }
        EXPECT_GE(op.bytes, Bytes{0}) << name;
    }
}

TEST(Fusion, traffic_never_becomes_negative_in_models_of_the_catalogue) {
    for (const char* name : {"resnet50", "gpt-small", "transformer-big-wmt", "se-resnext101-32x4d"}) {
        Options options{.accumulation = 2, .precision = Precision::bf16};
        options.framework.elementwise_fusion = plan::ElementwiseFusion::chains;
        const StepGraph graph = build(name, options);
        check(graph);
        for (const OpInstance& op : issued(graph)) EXPECT_GE(op.op->bytes, Bytes{0}) << name << ' ' << op.op->name;
    }
}

}  // namespace
}  // namespace lockstep::step::test
