// Flops and least bytes of layers, worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

const Layer& named(const Model& model, std::string_view name) {
    const auto place =
        std::find_if(model.layers.begin(), model.layers.end(), [&](const Layer& l) { return l.name == name; });
    if (place == model.layers.end()) throw InputError("no layer " + std::string(name));
    return *place;
}

const std::string small =
    "input: [4, 8, 8]\n"
    "layers:\n"
    "  - {name: first, op: convolution, out: 6, kernel: 3, padding: 1}\n"
    "  - {name: second, op: convolution, out: 10, kernel: 3, stride: 2, padding: 1, groups: 2, bias: true}\n"
    "  - {name: flat, op: flatten}\n"
    "  - {name: fc, op: linear, out: 5}\n"
    "  - {name: loss, op: softmax_loss}\n";

TEST(Cost, a_convolution_does_out_times_c_over_groups_times_kernel_squared_multiply_adds) {
    const Model model = model_of(small);
    const Layer& second = named(model, "second");  // 10 x 4 x 4 outputs, each of 6/2 x 3 x 3 products
    EXPECT_EQ(second.output, (Shape{10, 4, 4}));
    const LayerCost cost = cost_of(model, second, 2, DType::fp32);
    EXPECT_EQ(cost.multiply_adds, 2 * 160 * 27);
    EXPECT_EQ(cost.forward, Flops{2 * 2 * 160 * 27 + 2 * 160});  // and a bias each
    EXPECT_EQ(cost.backward_data, Flops{2 * 2 * 160 * 27});
    EXPECT_EQ(cost.backward_weights, Flops{2 * 2 * 160 * 27 + 2 * 160});
    // in 2 x 6 x 64, out 2 x 160, weights 10 x 3 x 9 + 10
    EXPECT_EQ(cost.forward_bytes, Bytes{4 * (768 + 320 + 280)});
    EXPECT_EQ(cost.backward_bytes, Bytes{4 * (320 + 768 + 280 + 768 + 280)});
}

TEST(Cost, the_first_layer_needs_no_gradient_of_the_input) {
    const Model model = model_of(small);
    const LayerCost cost = cost_of(model, named(model, "first"), 1, DType::fp32);
    EXPECT_EQ(cost.backward_data, Flops{0});
    EXPECT_GT(cost.backward_weights, Flops{0});
    EXPECT_FALSE(needs_input_gradient(model, named(model, "first")));
    EXPECT_TRUE(needs_input_gradient(model, named(model, "flat")));
}

TEST(Cost, layers_that_do_not_train_have_no_gradient_of_weights_and_ask_for_none) {
    std::string text = small;
    for (const std::string key : {"out: 6,", "out: 10,"})
        text.replace(text.find(key), key.size(), key + " trainable: false,");
    const Model model = model_of(text);
    EXPECT_EQ(cost_of(model, named(model, "second"), 1, DType::fp32).backward_weights, Flops{0});
    EXPECT_EQ(cost_of(model, named(model, "second"), 1, DType::fp32).backward_data, Flops{0});
    EXPECT_EQ(cost_of(model, named(model, "fc"), 1, DType::fp32).backward_data, Flops{0});
    EXPECT_GT(cost_of(model, named(model, "fc"), 1, DType::fp32).backward_weights, Flops{0});
}

TEST(Cost, attention_counts_all_scores_and_moves_only_its_ends) {
    const Model model = model_of("gpt: {layers: 1, hidden: 64, heads: 4, kv_heads: 2, vocab: 100, seq_len: 32}\n");
    const Layer& attention = named(model, "block.0.attention");
    EXPECT_TRUE(std::get<Attention>(attention.kind).causal);
    EXPECT_EQ(attention.input, (Shape{32, 128}));  // (4 + 2 x 2) heads of 16
    EXPECT_EQ(attention.output, (Shape{32, 64}));
    const LayerCost cost = cost_of(model, attention, 3, DType::bf16);
    EXPECT_EQ(cost.multiply_adds, 3 * 2 * 32 * 32 * 64);  // q k^T and p v
    EXPECT_GE(cost.forward, Flops{2.0 * static_cast<double>(cost.multiply_adds)});
    EXPECT_GE(cost.backward_data, Flops{4.0 * static_cast<double>(cost.multiply_adds)});
    EXPECT_EQ(cost.forward_bytes, Bytes{3 * 2 * (32 * 128 + 32 * 64)});
}

TEST(Cost, an_embedding_moves_the_rows_it_looks_up_and_multiplies_nothing) {
    const Model model = model_of("gpt: {layers: 1, hidden: 64, heads: 4, vocab: 1000, seq_len: 32}\n");
    const LayerCost cost = cost_of(model, named(model, "embedding"), 1, DType::fp32);
    EXPECT_EQ(cost.multiply_adds, 0);
    EXPECT_EQ(cost.forward, Flops{0});
    EXPECT_EQ(cost.forward_bytes, Bytes{4 * (32 * 64 + 32 * 64) + 4 * 32});
    EXPECT_EQ(cost.backward_data, Flops{0});
}

TEST(Cost, every_layer_of_every_shipped_model_scales_with_the_batch_and_is_never_negative) {
    for (const auto& name : model_names(shipped_models())) {
        const Model model = load_shipped(name);
        std::int64_t products = 0;
        for (const auto& layer : model.layers) {
            const LayerCost one = cost_of(model, layer, 1, DType::bf16), four = cost_of(model, layer, 4, DType::bf16);
            EXPECT_DOUBLE_EQ(four.forward.value, 4 * one.forward.value) << name << ' ' << layer.name;
            EXPECT_GE(four.forward_bytes, one.forward_bytes) << name << ' ' << layer.name;
            EXPECT_LE(four.forward_bytes, one.forward_bytes * 4) << name << ' ' << layer.name;
            EXPECT_GE(one.backward_bytes, Bytes{0}) << name << ' ' << layer.name;
            EXPECT_GE(one.forward.value, 2.0 * static_cast<double>(one.multiply_adds)) << name << ' ' << layer.name;
            products += one.multiply_adds;
        }
        EXPECT_EQ(products, forward_multiply_adds(model)) << name;
    }
}

TEST(Cost, a_batch_that_leaves_64_bits_is_refused) {
    const Model model = load_shipped("llama-3.1-405b");
    EXPECT_THROW(cost_of(model, named(model, "output"), INT64_MAX / 2, DType::bf16), InputError);
}

}  // namespace
}  // namespace lockstep::model
