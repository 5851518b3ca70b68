// Activation memory of transformer blocks against the published formula: Korthikanti et al. 2022, Reducing Activation
// Recomputation in Large Transformer Models, table 2 (16-bit activations, masks of one byte, attention unfused).
#include <gtest/gtest.h>

#include "model/gpt.hpp"
#include "step/builder.hpp"
#include "step/liveness.hpp"

namespace lockstep::step::test {
namespace {

constexpr double s = 256, b = 64, h = 512, a = 8;  // many tokens, so that gradients never make the peak

model::Model gpt(std::int64_t layers) {
    model::Transformer sizes;
    sizes.layers = layers;
    sizes.hidden = static_cast<std::int64_t>(h);
    sizes.heads = sizes.kv_heads = static_cast<std::int64_t>(a);
    sizes.head_dim = sizes.hidden / sizes.heads;
    sizes.ffn = 4 * sizes.hidden;
    sizes.vocab = 1024;
    sizes.seq_len = sizes.positions = static_cast<std::int64_t>(s);
    sizes.dropout = 0.1;
    return model::build_gpt("gpt", sizes);
}

/// Peak of activations on the first stage, in bytes.
double activations(std::int64_t layers, const plan::Mesh& mesh, const plan::Split& split, int passes) {
    plan::Plan plan;
    plan.mesh = mesh;
    plan.split = split;
    plan.micro_batch = static_cast<std::int64_t>(b);
    plan.accumulation = passes;
    plan::Framework framework;
    framework.attention = plan::AttentionAlgorithm::unfused;
    const model::Model model = gpt(layers);
    const StepGraph graph = build_step({.model = model,
                                        .plan = plan,
                                        .framework = framework,
                                        .placement = {mesh.ranks(), mesh.ranks()},
                                        .precision = Precision::bf16,
                                        .seed = 1,
                                        .input = std::nullopt});
    return measure_memory(graph, graph.classes[0]).peak.activations.value;
}

/// Of one more block on a stage, in units of s b h. What is outside the blocks cancels.
double per_block(const plan::Mesh& mesh, const plan::Split& split, int passes = 1) {
    const int stages = mesh.pp;
    return (activations(4 * stages, mesh, split, passes) - activations(2 * stages, mesh, split, passes)) /
           (2 * s * b * h);
}

constexpr double scores = 5 * a * s / h;

/// Layer norms keep a mean and an inverse deviation in fp32 for each token, which the paper leaves out: 16 / h, split
/// along the sequence or not.
constexpr double statistics = 16 / h;

TEST(MemoryFormula, a_block_keeps_34_plus_5as_over_h) {
    EXPECT_NEAR(per_block({}, {}), 34 + scores + statistics, 0.02 * (34 + scores));
}

TEST(MemoryFormula, tensor_parallelism_splits_all_but_10) {
    for (const int t : {2, 4})
        EXPECT_NEAR(per_block({.tp = t}, {}), 10 + 24.0 / t + scores / t + statistics, 0.02 * (10 + (24 + scores) / t));
}

TEST(MemoryFormula, sequence_parallelism_splits_everything) {
    for (const int t : {2, 4})
        EXPECT_NEAR(per_block({.tp = t}, {.sequence_parallel = true}), (34 + scores + statistics) / t,
                    0.02 * (34 + scores) / t);
}

TEST(MemoryFormula, selective_recomputation_drops_the_scores) {
    EXPECT_NEAR(per_block({}, {.recompute = plan::Recompute::selective}), 34 + statistics, 0.02 * 34);
    EXPECT_NEAR(per_block({.tp = 2}, {.sequence_parallel = true, .recompute = plan::Recompute::selective}),
                (34 + statistics) / 2, 0.02 * 17);
}

TEST(MemoryFormula, full_recomputation_keeps_a_blocks_input_alone) {
    EXPECT_NEAR(per_block({}, {.recompute = plan::Recompute::full}), 2, 0.02 * 2);
    EXPECT_NEAR(per_block({.tp = 2}, {.sequence_parallel = true, .recompute = plan::Recompute::full}), 1, 0.02);
}

TEST(MemoryFormula, the_first_stage_of_1f1b_keeps_pp_micro_batches_and_gpipe_all) {
    for (const int pp : {2, 4}) {
        EXPECT_NEAR(per_block({.pp = pp}, {}, 8), pp * (34 + scores + statistics), 0.02 * pp * (34 + scores));
        EXPECT_NEAR(per_block({.pp = pp}, {.schedule = plan::Schedule::gpipe}, 8), 8 * (34 + scores + statistics),
                    0.02 * 8 * (34 + scores));
    }
}

TEST(MemoryFormula, interleaving_keeps_1_plus_p_minus_1_over_pv_times_as_much) {
    // Section 4.2.3: L (1 + (p - 1) / (p m)) with m chunks a stage, against L / p x p of 1F1B.
    const int p = 4, v = 2;
    plan::Split split{.schedule = plan::Schedule::interleaved, .vpp = v};
    const double per_stage_block =
        (activations(4 * p * v, {.pp = p}, split, 8) - activations(2 * p * v, {.pp = p}, split, 8)) /
        (2 * v * s * b * h);
    EXPECT_NEAR(per_stage_block, p * (1 + (p - 1.0) / (p * v)) * (34 + scores + statistics),
                0.02 * p * (1 + (p - 1.0) / (p * v)) * (34 + scores));
}

}  // namespace
}  // namespace lockstep::step::test
