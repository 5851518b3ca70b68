// Layers of several inputs and kernels that aren't square: shapes, costs, and what is only simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string branches =
    "input: [4, 8, 8]\n"
    "layers:\n"
    "  - {name: wide, op: convolution, in: input, out: 6, kernel: [1, 7], padding: [0, 3]}\n"
    "  - {name: high, op: convolution, in: input, out: 2, kernel: [7, 1], padding: [3, 0]}\n"
    "  - {name: cat, op: concatenate, in: [wide, high, input]}\n"
    "  - {name: flat, op: flatten}\n"
    "  - {name: fc, op: linear, out: 5}\n"
    "  - {name: loss, op: softmax_loss}\n";

TEST(JoinedLayers, branches_are_joined_in_their_channels) {
    const Model model = model_of(branches);
    EXPECT_EQ(model.layers[2].output, (Shape{6 + 2 + 4, 8, 8}));
    EXPECT_EQ(why_only_simulated(model), "");
}

TEST(JoinedLayers, a_kernel_of_1_by_7_has_7_weights_and_products_for_each_pair_of_channels) {
    const Model model = model_of(branches);
    const Layer& wide = model.layers[0];
    EXPECT_EQ(wide.output, (Shape{6, 8, 8}));
    EXPECT_EQ(model.parameters[wide.parameters[0].index()].shape, (Shape{6, 4, 1, 7}));
    EXPECT_EQ(cost_of(model, wide, 2, DType::fp32).multiply_adds, 2 * 6 * 64 * 4 * 7);
}

TEST(JoinedLayers, concatenation_moves_each_element_once_each_way) {
    const Model model = model_of(branches);
    const LayerCost cost = cost_of(model, model.layers[2], 1, DType::fp16);
    EXPECT_EQ(cost.forward_bytes, Bytes{2 * 2 * 12 * 64});
    EXPECT_EQ(cost.forward, Flops{0});
}

TEST(JoinedLayers, queries_and_keys_of_two_layers_become_what_attention_reads) {
    const Model model = model_of(
        "inputs: {a: {tokens: 8, vocab: 50}, b: {tokens: 8, vocab: 50}}\n"
        "layers:\n"
        "  - {name: ea, op: embedding, in: a, hidden: 16}\n"
        "  - {name: eb, op: embedding, in: b, hidden: 16}\n"
        "  - {name: q, op: linear, in: ea, out: 16}\n"
        "  - {name: kv, op: linear, in: eb, out: 32}\n"
        "  - {name: qkv, op: concatenate, in: [q, kv], blocks: 4}\n"
        "  - {name: cross, op: attention, heads: 4, causal: false}\n"
        "  - {name: out, op: linear, out: 50}\n"
        "  - {name: loss, op: softmax_loss}\n");
    EXPECT_EQ(model.layers[4].output, (Shape{8, 48}));
    EXPECT_EQ(model.layers[5].output, (Shape{8, 16}));
}

const std::string remembering =
    "inputs: {a: {tokens: 8, vocab: 50}}\n"
    "layers:\n"
    "  - {name: e, op: embedding, in: a, hidden: 16}\n"
    "  - {name: qkv, op: linear, in: e, out: 48}\n"
    "  - {name: old, op: linear, in: e, out: 48, tied_to: qkv}\n"
    "  - {name: attention, op: attention, in: [qkv, old], heads: 4, memory: 8, relative: true}\n"
    "  - {name: out, op: linear, out: 50}\n"
    "  - {name: loss, op: softmax_loss}\n";

TEST(JoinedLayers, attention_to_a_memory_has_scores_for_both_and_a_third_product_when_relative) {
    const Model model = model_of(remembering);
    EXPECT_EQ(cost_of(model, model.layers[3], 1, DType::fp32).multiply_adds, 3 * 8 * (8 + 8) * 16);
    EXPECT_THAT(why_only_simulated(model), HasSubstr("'attention' (attention with a memory"));
}

TEST(JoinedLayers, a_memory_of_another_length_is_refused) {
    std::string text = remembering;
    text.replace(text.find("memory: 8"), 9, "memory: 7");
    EXPECT_THAT(errors_of(text), Contains(HasSubstr("[7, 48] of memory")));
}

TEST(JoinedLayers, channels_are_scaled_by_one_factor_each) {
    const std::string text =
        "input: [4, 8, 8]\n"
        "layers:\n"
        "  - {name: conv, op: convolution, out: 6, kernel: 1}\n"
        "  - {name: pool, op: global_average_pool}\n"
        "  - {name: gate, op: sigmoid}\n"
        "  - {name: scale, op: channel_scale, in: [conv, gate]}\n"
        "  - {name: flat, op: flatten}\n"
        "  - {name: loss, op: softmax_loss}\n";
    const Model model = model_of(text);
    EXPECT_EQ(model.layers[3].output, (Shape{6, 8, 8}));
    EXPECT_THAT(why_only_simulated(model), HasSubstr("'gate' (sigmoid)"));
    std::string wrong = text;
    wrong.replace(wrong.find("[conv, gate]"), 12, "[conv, conv]");
    EXPECT_THAT(errors_of(wrong), Contains(HasSubstr("a factor for each of 6 channels")));
}

TEST(JoinedLayers, shapes_that_differ_in_more_than_channels_are_refused) {
    std::string text = branches;
    text.replace(text.find("padding: [0, 3]"), 15, "padding: [0, 2]");
    EXPECT_THAT(errors_of(text), Contains(HasSubstr("differs in channels alone")));
}

TEST(JoinedLayers, a_kernel_of_three_numbers_is_refused) {
    std::string text = branches;
    text.replace(text.find("kernel: [1, 7]"), 14, "kernel: [1, 7, 1]");
    EXPECT_THAT(errors_of(text), Contains(HasSubstr("a number or [height, width]")));
}

TEST(JoinedLayers, a_block_reaches_a_layer_of_the_model_by_a_slash) {
    const Model model = model_of(
        "input: [4]\n"
        "blocks: {b: {layers: [{name: l, op: linear, out: 4}, {name: sum, op: add, in: [l, /first]}]}}\n"
        "layers:\n"
        "  - {name: first, op: linear, out: 4}\n"
        "  - {name: second, block: b}\n"
        "  - {name: loss, op: softmax_loss}\n");
    EXPECT_EQ(model.layer(model.layers[2].inputs[1]).name, "first");
}

}  // namespace
}  // namespace lockstep::model
