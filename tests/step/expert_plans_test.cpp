// Step graphs of models with experts: they pass check(), do the work of the unsplit step, and hold every expert once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/error.hpp"
#include "graphs.hpp"
#include "model/gpt.hpp"
#include "step/check.hpp"
#include "step/parameter_runs.hpp"
#include "step/routing.hpp"

namespace lockstep::step::test {
namespace {

model::Model gpt(const model::Experts& experts, std::int64_t layers = 4) {
    model::Transformer sizes;
    sizes.layers = layers;
    sizes.hidden = 32;
    sizes.heads = sizes.kv_heads = 4;
    sizes.head_dim = 8;
    sizes.ffn = 64;
    sizes.vocab = 128;
    sizes.seq_len = sizes.positions = 32;
    sizes.bias = false;
    sizes.experts = experts;
    return model::build_gpt("gpt", sizes);
}

plan::Plan plan_of(const plan::Mesh& mesh, int passes = 2) {
    plan::Plan plan;
    plan.mesh = mesh;
    plan.micro_batch = 2;
    plan.accumulation = passes;
    plan.bucket = plan.first_bucket = Bytes{16384};
    plan.optimizer = plan::Optimizer::adam;
    return plan;
}

template <class F>
void for_each_op_of_all(const StepGraph& graph, F&& f) {
    for (const RankClass& c : graph.classes) for_each_op(graph, c.program, [&](const OpInstance& i) { f(*i.op, c); });
}

/// Flops of the products of a step over all ranks, without what is computed again.
double products(const StepGraph& graph) {
    double sum = 0;
    for_each_op_of_all(graph, [&](const Op& op, const RankClass& c) {
        const std::string_view kind = kind_name(op);
        if (!op.name.ends_with(".recompute") && (kind == "gemm" || kind == "attention"))
            sum += op.flops.value * static_cast<double>(c.multiplicity);
    });
    return sum;
}

template <class Kind>
const Kind& first_of(const StepGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const Op& op : block.ops)
            if (const auto* compute = std::get_if<Compute>(&op.kind))
                if (const auto* kind = std::get_if<Kind>(compute)) return *kind;
    throw InputError("no such op");
}

/// How often each element of each parameter is in a reduced gradient over all ranks.
void expect_gradients_cover_parameters(const StepGraph& graph, const model::Model& model) {
    std::map<std::int32_t, std::vector<int>> copies;
    for (std::size_t i = 0; i < model.parameters.size(); ++i)
        copies[static_cast<std::int32_t>(i)].resize(static_cast<std::size_t>(model.parameters[i].elements()));
    for (int rank = 0; rank < graph.mesh.ranks(); ++rank)
        for (const TensorId id : reduced_gradients_of(graph, graph.rank_class(rank)))
            for (const ParameterRun& run : parameter_runs(graph, id, rank))
                for (std::int64_t k = 0; k < run.count; ++k)
                    ++copies[run.parameter.value][static_cast<std::size_t>(run.global + k)];
    for (const auto& [id, counts] : copies) {
        const auto [least, most] = std::ranges::minmax(counts);
        EXPECT_EQ(least, most) << model.parameters[static_cast<std::size_t>(id)].name;
        EXPECT_GE(least, 1) << model.parameters[static_cast<std::size_t>(id)].name;
    }
}

// 2 samples of 32 positions, 2 of 8 experts each: 16 rows an expert.
TEST(ExpertPlans, experts_take_their_share_of_the_tokens_or_their_capacity) {
    const auto rows = [](double capacity, double imbalance, const plan::Mesh& mesh = {}) {
        return first_of<Route>(build_plan(gpt({8, 2, capacity, imbalance, 1}), plan_of(mesh))).rows_per_expert;
    };
    EXPECT_EQ(rows(0, 0), 16);
    EXPECT_EQ(rows(1.25, 0), 16) << "nobody wants more";
    EXPECT_EQ(rows(0.5, 0), 8);
    EXPECT_EQ(rows(1.25, 1), 20);
    EXPECT_GE(rows(0, 1), 32);
    EXPECT_LE(rows(0, 1), 32 + 2 * 4) << "parts of rounds at both ends of a sample";
    EXPECT_EQ(rows(0, 0, {.ep = 4}), 16) << "of each rank's tokens";
    EXPECT_EQ(rows(0, 0, {.cp = 2}), 8);
}

TEST(ExpertPlans, two_all_to_alls_a_pass_carry_the_rows_of_each_expert) {
    const StepGraph graph = build_plan(gpt({8, 2, 0, 0, 1}, 1), plan_of({.ep = 4}, 1));
    check(graph);
    int exchanges = 0;
    for_each_op_of_all(graph, [&](const Op& op, const RankClass&) {
        const auto* collective = std::get_if<Collective>(&op.kind);
        if (collective == nullptr || collective->kind != CollectiveKind::all_to_all) return;
        ++exchanges;
        EXPECT_EQ(collective->count, 2 * 16 * 32) << op.name << ": two experts of each rank, 16 rows of 32";
        EXPECT_EQ(graph.communicators[collective->communicator.index()].axes, std::vector{plan::Axis::ep});
    });
    EXPECT_EQ(exchanges, 4) << "there and back, forward and backward";
    int grouped = 0;
    for_each_op_of_all(graph, [&](const Op& op, const RankClass&) {
        const auto* compute = std::get_if<Compute>(&op.kind);
        const Gemm* product = compute != nullptr ? std::get_if<Gemm>(compute) : nullptr;
        if (product == nullptr || product->batch != 2) return;
        ++grouped;
        EXPECT_EQ(product->a == Gemm::Transpose::yes ? product->k : product->m, 4 * 16) << op.name;
    });
    EXPECT_EQ(grouped, 2 * 3) << "up and down: forward, and backward to data and to weights";
}

TEST(ExpertPlans, experts_are_reduced_over_the_ranks_that_have_the_same) {
    const StepGraph graph = build_plan(gpt({8, 2, 0, 0, 1}), plan_of({.cp = 2, .ep = 2, .dp = 2}));
    check(graph);
    std::map<std::string, std::int64_t> elements;
    for_each_op_of_all(graph, [&](const Op& op, const RankClass&) {
        const auto* collective = std::get_if<Collective>(&op.kind);
        if (collective != nullptr && collective->kind == CollectiveKind::all_reduce)
            elements[graph.communicators[collective->communicator.index()].name] += collective->count;
    });
    // 4 blocks of 4 experts here, 2 x 32 x 64 weights each.
    EXPECT_EQ(elements["expert_dp"], 4 * 4 * 2 * 32 * 64);
    const auto lane = std::ranges::find(graph.communicators, "expert_dp", &Communicator::name);
    ASSERT_NE(lane, graph.communicators.end());
    EXPECT_EQ(lane->axes, (std::vector{plan::Axis::cp, plan::Axis::dp}));
}

TEST(ExpertPlans, ep_alone_reduces_no_expert) {
    const StepGraph graph = build_plan(gpt({8, 2, 0, 0, 1}), plan_of({.ep = 2}));
    check(graph);
    for (const Communicator& c : graph.communicators) EXPECT_NE(c.name, "expert_dp");
    expect_gradients_cover_parameters(graph, gpt({8, 2, 0, 0, 1}));
}

TEST(ExpertPlans, random_plans_pass_the_check_and_do_the_same_work) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto one_of = [&](std::initializer_list<int> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
    };
    int built = 0, tried = 0;
    while (built < 100 && ++tried < 3000) {
        plan::Plan plan = plan_of({.cp = one_of({1, 2}),
                                   .ep = one_of({1, 2, 4, 8}),
                                   .dp = one_of({1, 2, 3}),
                                   .replica = one_of({1, 1, 2}),
                                   .pp = one_of({1, 2})},
                                  one_of({1, 2, 4}));
        if (plan.mesh.ranks() > 64) continue;
        plan.split.schedule = static_cast<plan::Schedule>(one_of({0, 1, 2}));
        plan.split.vpp = plan.split.schedule == plan::Schedule::interleaved ? 2 : 1;
        plan.split.context = one_of({0, 1}) == 1 ? plan::ContextAlgorithm::ring : plan::ContextAlgorithm::all_to_all;
        plan.split.recompute = static_cast<plan::Recompute>(one_of({0, 1, 2}));
        plan.split.zero = one_of({0, 1, 2, 3});
        plan.split.zero_keep = one_of({0, 1}) == 1;
        plan.split.reshard_after_forward = one_of({0, 1}) == 1;
        plan.overlap = one_of({0, 1}) == 1;
        plan::Framework framework;
        framework.bucket_storage = static_cast<plan::BucketStorage>(one_of({0, 1}));
        if (one_of({0, 1}) == 1) framework.wire_dtype = DType::bf16;
        const model::Model model = gpt({8, one_of({1, 2}), 0, 0, one_of({1, 2})});
        try {
            plan::check_plan(plan, model);
        } catch (const InputError&) { continue; }
        const plan::Mesh& m = plan.mesh;
        SCOPED_TRACE(fmt::format("cp {} ep {} dp {} replica {} pp {} passes {} zero {} keep {} recompute {} {}", m.cp,
                                 m.ep, m.dp, m.replica, m.pp, plan.accumulation, plan.split.zero, plan.split.zero_keep,
                                 to_string(plan.split.recompute), to_string(plan.split.schedule)));
        const StepGraph graph =
            build_plan(model, plan, framework, one_of({0, 1}) == 1 ? Precision::bf16 : Precision::fp32);
        ASSERT_NO_THROW(check(graph));
        if (built % 10 == 0) expect_gradients_cover_parameters(graph, model);
        plan::Plan whole = plan_of({}, plan.accumulation);
        whole.micro_batch = plan.micro_batch * m.replicas();
        EXPECT_NEAR(products(graph) / products(build_plan(model, whole, framework)), 1, 1e-9);
        ++built;
    }
    EXPECT_EQ(built, 100) << "of " << tried;
}

TEST(ExpertPlans, fp16_looks_for_overflow_on_all_experts) {
    const StepGraph graph = build_plan(gpt({8, 2, 0, 0, 1}), plan_of({.ep = 2, .dp = 2}), {}, Precision::fp16_amp);
    check(graph);
    bool is_found = false;
    for (const Communicator& c : graph.communicators) is_found = is_found || c.name == "model";
    EXPECT_TRUE(is_found);
}

}  // namespace
}  // namespace lockstep::step::test
