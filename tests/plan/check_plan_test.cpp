// What a model can't be trained by, and the values that a refusal names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "planned_models.hpp"

namespace lockstep::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string padded = "{base: gpt-small, vocab: 50304}";

std::vector<std::string> refusals(const std::string& model, const Plan& plan) {
    return plan_refusals(plan, model_named(model));
}
Plan split_over(Mesh mesh, Split split = {}, int accumulation = 1) {
    Plan plan;
    plan.mesh = mesh;
    plan.split = std::move(split);
    plan.accumulation = accumulation;
    return plan;
}

TEST(CheckPlan, data_parallelism_suits_every_model) {
    for (const char* const model : {"gpt-small", "bert-base", "resnet50", "vgg16", "llama-3.1-8b"})
        EXPECT_THAT(refusals(model, split_over({.dp = 8})), IsEmpty()) << model;
}

TEST(CheckPlan, plans_that_people_run_are_let_through) {
    EXPECT_THAT(
        refusals(padded, split_over({.tp = 4, .dp = 2, .pp = 3}, {.sequence_parallel = true, .async_tp = true}, 6)),
        IsEmpty());
    Split llama;
    llama.stage_blocks.assign(16, 8);
    llama.stage_blocks.front() = llama.stage_blocks.back() = 7;
    llama.sequence_parallel = true;
    llama.zero = 1;
    EXPECT_THAT(refusals("llama-3.1-405b", split_over({.tp = 8, .dp = 128, .pp = 16}, llama, 16)), IsEmpty());
    EXPECT_THAT(refusals("llama-3.1-8b", split_over({.tp = 2, .cp = 2, .dp = 8}, {.zero = 3})), IsEmpty());
    EXPECT_THAT(refusals("llama-3.1-8b", split_over({.cp = 8}, {.context = ContextAlgorithm::all_to_all})), IsEmpty());
    EXPECT_THAT(refusals("{base: gpt3-175b, vocab: 51200}",
                         split_over({.tp = 8, .dp = 2, .pp = 8},
                                    {.schedule = Schedule::interleaved, .vpp = 2, .recompute = Recompute::full}, 16)),
                IsEmpty());
    EXPECT_THAT(refusals("bert-base", split_over({.tp = 2, .cp = 2, .dp = 1, .pp = 2}, {.zero = 2}, 4)), IsEmpty());
    EXPECT_THAT(refusals("resnet50", split_over({.dp = 2, .pp = 2}, {.recompute = Recompute::full}, 4)), IsEmpty());
}

TEST(CheckPlan, a_vocabulary_that_tp_does_not_divide_is_padded) {
    EXPECT_THAT(refusals("gpt-small", split_over({.tp = 2})),
                ElementsAre(HasSubstr("tp=2 doesn't divide vocab=50257; pad the vocabulary to 50304 (model: {base: "
                                      "gpt-small, vocab: 50304})")));
    EXPECT_THAT(refusals(padded, split_over({.tp = 2})), IsEmpty());
}

TEST(CheckPlan, tp_has_to_divide_heads_key_value_heads_and_inner_widths) {
    EXPECT_THAT(refusals(padded, split_over({.tp = 8})),
                ElementsAre(HasSubstr("tp=8 doesn't divide heads=12; use tp=1, 2, 3, 4, 6 or 12"),
                            HasSubstr("doesn't divide kv_heads=12")));
    EXPECT_THAT(refusals("llama-3.1-8b", split_over({.tp = 16})),
                ElementsAre(HasSubstr("tp=16 doesn't divide kv_heads=8; use tp=1, 2, 4 or 8")));
    EXPECT_THAT(refusals("{base: gpt-small, vocab: 50304, ffn: 1001}", split_over({.tp = 2})),
                ElementsAre(HasSubstr("tp=2 doesn't divide ffn=1001; use tp=1")));
    // Gated: half of what comes out of the first linear layer.
    EXPECT_THAT(refusals("{base: gpt-small, vocab: 50304, ffn: 1001, gated: true}", split_over({.tp = 2})),
                ElementsAre(HasSubstr("ffn=1001")));
}

TEST(CheckPlan, segments_of_bert_are_too_few_to_be_split) {
    EXPECT_THAT(refusals("bert-base", split_over({.tp = 3})), IsEmpty());  // 30522 = 3 x 10174
}

TEST(CheckPlan, images_are_not_split_over_tp_or_cp) {
    EXPECT_THAT(refusals("vgg16", split_over({.tp = 2})), ElementsAre(HasSubstr("model of images; use tp=1")));
    EXPECT_THAT(refusals("resnet50", split_over({.cp = 2})), ElementsAre(HasSubstr("model of images; use cp=1")));
    EXPECT_THAT(refusals("resnet50", split_over({.tp = 2}, {.sequence_parallel = true})),
                ElementsAre(HasSubstr("use tp=1")));
}

TEST(CheckPlan, a_model_without_pairs_of_linear_layers_is_not_split_over_tp) {
    const model::Model model = model_of(R"(
input: {tokens: 8, vocab: 256}
layers:
  - {op: embedding, hidden: 4}
  - {op: linear, out: 256}
  - {op: softmax_loss}
)");
    EXPECT_THAT(plan_refusals(split_over({.tp = 2}), model), ElementsAre(HasSubstr("this model has none; use tp=1")));
    EXPECT_THAT(plan_refusals(split_over({.cp = 2}), model), ElementsAre(HasSubstr("this model has none; use cp=1")));
    EXPECT_THAT(plan_refusals(split_over({.pp = 2}), model), ElementsAre(HasSubstr("the model has none; use pp=1")));
}

TEST(CheckPlan, sequence_parallelism_wants_tp_and_a_sequence_that_divides) {
    EXPECT_THAT(refusals(padded, split_over({}, {.sequence_parallel = true})), ElementsAre(HasSubstr("tp is 1")));
    EXPECT_THAT(refusals(padded, split_over({.tp = 2}, {.async_tp = true})),
                ElementsAre(HasSubstr("add sequence_parallel: true")));
    EXPECT_THAT(
        refusals("{base: gpt-small, vocab: 50304, seq_len: 102}", split_over({.tp = 4}, {.sequence_parallel = true})),
        ElementsAre(HasSubstr("seq_len=102 doesn't divide into tp=4 = 4 equal parts; use a seq_len of 100 or "
                              "104")));
}

TEST(CheckPlan, a_causal_ring_has_two_parts_a_rank) {
    const std::string gpt = "{base: gpt-small, vocab: 50304, seq_len: 36}";
    EXPECT_THAT(refusals(gpt, split_over({.cp = 2})), IsEmpty());
    EXPECT_THAT(refusals(gpt, split_over({.cp = 4})),
                ElementsAre(HasSubstr("seq_len=36 doesn't divide into 2 x cp=4 = 8 equal parts; use a seq_len of 32 or "
                                      "40")));
    EXPECT_THAT(refusals(gpt, split_over({.cp = 4}, {.context = ContextAlgorithm::all_to_all})), IsEmpty());
    EXPECT_THAT(refusals("{base: bert-base, seq_len: 36}", split_over({.cp = 4})), IsEmpty());  // not causal
    EXPECT_THAT(refusals(gpt, split_over({.tp = 2, .cp = 6}, {.sequence_parallel = true})),
                ElementsAre(HasSubstr("2 x cp=6 x tp=2 = 24 equal parts; use a seq_len of 24 or 48")));
}

TEST(CheckPlan, all_to_all_gives_whole_heads_to_each_rank) {
    EXPECT_THAT(refusals("llama-3.1-8b", split_over({.tp = 2, .cp = 8}, {.context = ContextAlgorithm::all_to_all})),
                ElementsAre(HasSubstr("common divisor 4; use cp=1, 2 or 4, or context: ring")));
}

TEST(CheckPlan, a_layer_that_wants_the_whole_sequence_forbids_its_split) {
    const model::Model model = model_of(R"(
input: {tokens: 8, vocab: 256}
layers:
  - {op: embedding, hidden: 4}
  - {op: linear, out: 12}
  - {op: attention, heads: 2}
  - {op: linear, out: 4}
  - {name: pooler, op: first_token}
  - {op: linear, out: 2}
  - {op: softmax_loss}
)");
    EXPECT_THAT(plan_refusals(split_over({.cp = 2}), model),
                ElementsAre(HasSubstr("layer 'pooler' (first_token) wants it whole; use cp=1")));
    EXPECT_THAT(plan_refusals(split_over({.tp = 2}, {.sequence_parallel = true}), model),
                ElementsAre(HasSubstr("use sequence_parallel: false")));
    EXPECT_THAT(plan_refusals(split_over({.tp = 2}), model), IsEmpty());
}

TEST(CheckPlan, experts_have_to_be_there) {
    EXPECT_THAT(refusals("gpt-small", split_over({.ep = 4})), ElementsAre(HasSubstr("this model has none; use ep=1")));
}

TEST(CheckPlan, schedules_and_chunks_have_to_go_together) {
    EXPECT_THAT(refusals("gpt-small", split_over({.pp = 16}, {}, 16)),
                ElementsAre(HasSubstr("12 blocks; use pp=1, 2")));
    EXPECT_THAT(refusals("gpt-small", split_over({.pp = 5}, {}, 16)),
                ElementsAre(HasSubstr("stage_blocks: [2, 3, 3, 2, 2]")));
    EXPECT_THAT(refusals("gpt-small", split_over({.pp = 2}, {.schedule = Schedule::interleaved, .vpp = 2}, 3)),
                ElementsAre(HasSubstr("groups of pp=2, and a step has 3; use 2 or 4")));
    EXPECT_THAT(refusals("gpt-small", split_over({.pp = 2}, {.vpp = 2}, 2)), ElementsAre(HasSubstr("interleaved")));
    EXPECT_THAT(refusals("gpt-small", split_over({.pp = 2}, {.schedule = Schedule::interleaved}, 2)),
                ElementsAre(HasSubstr("vpp of 2 or more")));
    // Fewer micro-batches than stages are a poor plan, not a wrong one.
    EXPECT_THAT(refusals("gpt-small", split_over({.pp = 4}, {}, 1)), IsEmpty());
    EXPECT_THAT(refusals("vgg16", split_over({.pp = 2}, {}, 2)), ElementsAre(HasSubstr("use pp=1")));
}

TEST(CheckPlan, a_weight_is_shared_within_a_stage_or_by_the_first_and_the_last) {
    const std::string text = R"(
input: {tokens: 8, vocab: 256}
blocks:
  plain: {layers: [{name: fc, op: linear, out: 4}]}
  tied: {layers: [{name: fc, op: linear, out: 4}]}
layers:
  - {name: e, op: embedding, hidden: 4}
  - {name: a, block: plain}
  - {name: b, block: plain}
  - {name: between, op: linear, out: 4, tied_to: e2}
  - {name: c, block: plain}
  - {name: o, op: linear, out: 256, bias: false, tied_to: e}
  - {op: softmax_loss}
)";
    std::string shared = text;
    shared.replace(shared.find("tied_to: e2"), 11, "tied_to: a.fc");
    const model::Model model = model_of(shared);
    EXPECT_THAT(plan_refusals(split_over({.pp = 3}, {}, 3), model),
                ElementsAre(HasSubstr("'a.fc' and 'between' share weight 'a.fc.weight' but are on stages 0 and 1")));
}

TEST(CheckPlan, zero_3_leaves_no_rank_without_a_share) {
    const std::string tiny = "{base: gpt-small, layers: 1, hidden: 2, heads: 1, vocab: 2, seq_len: 4, positions: 4}";
    // A block: 12 h^2 + 13 h = 74 parameters.
    EXPECT_THAT(refusals(tiny, split_over({.dp = 128}, {.zero = 3})),
                ElementsAre(HasSubstr("parameters of the layers in no block over 128 ranks"),
                            AllOf(HasSubstr("spreads 74 parameters of the block of 'block.0.norm1' over 128 ranks"),
                                  HasSubstr("use zero=0, 1 or 2, or replica so that at most 74 ranks share"))));
    EXPECT_THAT(refusals(tiny, split_over({.dp = 128}, {.zero = 2})), IsEmpty());
    EXPECT_THAT(refusals(tiny, split_over({.dp = 8, .replica = 16}, {.zero = 3})), IsEmpty());
}

TEST(CheckPlan, zero_3_with_a_block_frozen_whole_is_refused) {
    const model::Model model = model_of(R"(
input: [3, 8, 8]
blocks:
  frozen: {layers: [{name: conv, op: convolution, out: 3, kernel: 1, trainable: false}]}
  trained: {layers: [{name: conv, op: convolution, out: 3, kernel: 1}]}
layers:
  - {name: a, block: frozen, repeat: 3}
  - {name: b, block: trained}
  - {op: flatten}
  - {op: softmax_loss}
)");
    EXPECT_THAT(plan_refusals(split_over({.dp = 2}, {.zero = 3}), model),
                ElementsAre(AllOf(HasSubstr("the block of 'a.0.conv' and 2 more"), HasSubstr("use zero=0, 1 or 2"))));
    EXPECT_THAT(plan_refusals(split_over({.dp = 2}, {.zero = 2}), model), IsEmpty());
}

TEST(CheckPlan, zero_on_one_rank_has_no_effect_and_is_accepted) {
    for (const int zero : {1, 2, 3}) EXPECT_THAT(refusals("gpt-small", split_over({}, {.zero = zero})), IsEmpty());
}

TEST(CheckPlan, what_is_computed_again_has_to_be_there) {
    EXPECT_THAT(refusals("resnet50", split_over({}, {.recompute = Recompute::selective})),
                ElementsAre(HasSubstr("use recompute: none or full")));
    const model::Model flat =
        model_of("input: [3, 8, 8]\nlayers: [{op: flatten}, {op: linear, out: 2}, {op: softmax_loss}]\n");
    EXPECT_THAT(plan_refusals(split_over({}, {.recompute = Recompute::full}), flat),
                ElementsAre(HasSubstr("use recompute: none")));
}

TEST(CheckPlan, all_reasons_come_at_once) {
    const Plan plan = split_over({.tp = 5, .cp = 3, .ep = 2, .pp = 7}, {.schedule = Schedule::interleaved, .vpp = 1});
    try {
        check_plan(plan, model_named("gpt-small"));
        ADD_FAILURE() << "no error";
    } catch (const InputError& failure) {
        EXPECT_THAT(failure.what(), AllOf(HasSubstr("gpt-small: tp=5 doesn't divide heads=12"), HasSubstr("ffn=3072"),
                                          HasSubstr("vocab=50257"), HasSubstr("seq_len=1024"),
                                          HasSubstr("12 blocks don't divide"), HasSubstr("ep=2")));
        EXPECT_GE(std::ranges::count(std::string(failure.what()), '\n'), 6);
    }
}

}  // namespace
}  // namespace lockstep::plan
