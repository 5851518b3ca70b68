// Low-rank adapters on frozen weights (Hu et al. 2021).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model adapted(const std::string& lora, const std::string& more = "") {
    return model_of("gpt: {layers: 2, hidden: 64, heads: 4, vocab: 100, seq_len: 16, " + more + "lora: " + lora +
                    "}\n");
}
const Layer& named(const Model& model, std::string_view name) {
    const auto place = std::ranges::find(model.layers, name, &Layer::name);
    if (place == model.layers.end()) throw InputError("no layer " + std::string(name));
    return *place;
}
std::int64_t trained_elements(const Model& model) {
    std::int64_t sum = 0;
    for (const Parameter& parameter : model.parameters)
        if (parameter.trainable) sum += parameter.elements();
    return sum;
}

// rank (in + out) of qkv 64 -> 192, proj 64 -> 64, up 64 -> 256, down 256 -> 64, in two blocks.
TEST(Lora, trains_rank_times_in_plus_out_of_each_target_and_nothing_else) {
    const Model model = adapted("{rank: 8, alpha: 16}");
    EXPECT_EQ(trained_elements(model), 2 * 8 * ((64 + 192) + (64 + 64) + (64 + 256) + (256 + 64)));
    EXPECT_EQ(model.parameter_count() - trained_elements(model),
              model_of("gpt: {layers: 2, hidden: 64, heads: 4, vocab: 100, seq_len: 16}\n").parameter_count());
    EXPECT_EQ(model.lora_rank, 8);
    for (const Parameter& parameter : model.parameters)
        EXPECT_EQ(parameter.trainable, parameter.name.find(".lora_") != std::string::npos) << parameter.name;
}

TEST(Lora, an_adapter_reads_what_its_layer_reads_and_is_added_to_what_it_gives) {
    const Model model = adapted("{rank: 8, targets: [qkv]}");
    const Layer& sum = named(model, "block.1.qkv.lora_add");
    EXPECT_EQ(model.layer(sum.inputs[0]).name, "block.1.qkv");
    EXPECT_EQ(model.layer(sum.inputs[1]).name, "block.1.qkv.lora_b");
    const Layer& a = named(model, "block.1.qkv.lora_a");
    EXPECT_EQ(a.inputs, named(model, "block.1.qkv").inputs);
    EXPECT_EQ(model.layer(named(model, "block.1.attention").inputs[0]).name, "block.1.qkv.lora_add");
    for (const char* const name : {"block.1.qkv.lora_a", "block.1.qkv.lora_b", "block.1.qkv.lora_add"})
        EXPECT_EQ(named(model, name).repeat_group, 1);
    EXPECT_EQ(std::ranges::count_if(model.layers, [](const Layer& l) { return l.name.ends_with("lora_a"); }), 2);
}

TEST(Lora, b_starts_at_zero_and_a_does_not) {
    const Model model = adapted("{rank: 8}");
    EXPECT_EQ(model.parameters[named(model, "block.0.up.lora_b").parameters[0].index()].init_scale, 0);
    EXPECT_GT(model.parameters[named(model, "block.0.up.lora_a").parameters[0].index()].init_scale, 0);
}

// Frozen weights have no gradient of their own, and what lies before the first adapter none at all.
TEST(Lora, the_backward_pass_leaves_frozen_weights_out) {
    const Model model = adapted("{rank: 8, targets: [down]}");
    EXPECT_EQ(cost_of(model, named(model, "block.1.qkv"), 1, DType::fp32).backward_weights, Flops{0});
    EXPECT_GT(cost_of(model, named(model, "block.1.qkv"), 1, DType::fp32).backward_data, Flops{0});
    EXPECT_EQ(cost_of(model, named(model, "block.0.qkv"), 1, DType::fp32).backward_data, Flops{0});
    EXPECT_GT(cost_of(model, named(model, "block.0.down.lora_b"), 1, DType::fp32).backward_weights, Flops{0});
}

TEST(Lora, an_experiment_adds_it_to_a_model_by_name) {
    config::Diagnostics diagnostics;
    const Model model =
        load_model(shipped_models(),
                   config::parse_text("{base: llama-3.1-8b, lora: {rank: 16, alpha: 32}}", "exp.yaml"), diagnostics);
    diagnostics.throw_if_any();
    // 16 (in + out) of qkv 4096 -> 6144, proj 4096 -> 4096, up 4096 -> 28672, down 14336 -> 4096, in 32 blocks
    EXPECT_EQ(trained_elements(model), 32 * 16 * ((4096 + 6144) + 2 * 4096 + (4096 + 28672) + (14336 + 4096)));
    EXPECT_EQ(model.name, "llama-3.1-8b[lora.alpha=32,lora.rank=16]");
}

TEST(Lora, wrong_adapters_are_all_reported) {
    EXPECT_THAT(errors_of("gpt: {layers: 1, hidden: 8, heads: 2, vocab: 10, seq_len: 8, lora: {rank: 0, alpha: -1, "
                          "targets: [qvk, up, up], rnk: 2}}\n"),
                ElementsAre(HasSubstr("rank: wants"), HasSubstr("alpha: wants"), HasSubstr("did you mean 'qkv'"),
                            HasSubstr("'up' is in the list twice"), HasSubstr("'up' is in the list twice"),
                            HasSubstr("'rnk'")));
    EXPECT_THAT(errors_of("gpt: {layers: 1, hidden: 8, heads: 2, vocab: 10, seq_len: 8, lora: {alpha: 2}}\n"),
                ElementsAre(HasSubstr("'rank' is missing")));
}

TEST(Frozen, layers_of_a_file_do_not_train) {
    const Model model = model_of(
        "input: [3, 8, 8]\nlayers:\n  - {name: c, op: convolution, out: 4, kernel: 1, bias: true, trainable: false}\n"
        "  - {op: flatten}\n  - {name: fc, op: linear, out: 2}\n  - {op: softmax_loss}\n");
    for (const Parameter& parameter : model.parameters)
        EXPECT_EQ(parameter.trainable, parameter.name.starts_with("fc")) << parameter.name;
}

}  // namespace
}  // namespace lockstep::model
