// Step graphs of split plans: they pass check(), hold every parameter once, and do the work of the unsplit step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.hpp"
#include "graphs.hpp"
#include "model/gpt.hpp"
#include "step/check.hpp"
#include "step/liveness.hpp"
#include "step/parameter_runs.hpp"

namespace lockstep::step::test {
namespace {

model::Model gpt(std::int64_t layers, bool tied = true, bool rotary = false) {
    model::Transformer sizes;
    sizes.layers = layers;
    sizes.hidden = 64;
    sizes.heads = 8;
    sizes.kv_heads = rotary ? 4 : 8;
    sizes.head_dim = 8;
    sizes.ffn = 128;
    sizes.vocab = 512;
    sizes.seq_len = sizes.positions = 32;
    sizes.gated = rotary;
    sizes.rotary = rotary;
    sizes.tied = tied;
    sizes.dropout = 0.1;
    sizes.bias = !rotary;
    if (rotary) sizes.norm = model::Norm::Kind::rms;
    return model::build_gpt("gpt", sizes);
}

plan::Plan plan_of(const plan::Mesh& mesh, int passes = 4) {
    plan::Plan plan;
    plan.mesh = mesh;
    plan.micro_batch = 2;
    plan.accumulation = passes;
    plan.bucket = plan.first_bucket = Bytes{65536};
    plan.optimizer = plan::Optimizer::adam;
    return plan;
}

/// Flops of the matrix products of a step over all ranks, without what is computed again.
double products(const StepGraph& graph) {
    double sum = 0;
    for (const RankClass& c : graph.classes)
        for_each_op(graph, c.program, [&](const OpInstance& i) {
            const bool is_again = i.op->name.ends_with(".recompute");
            const std::string_view kind = kind_name(*i.op);
            if (!is_again && (kind == "gemm" || kind == "attention"))
                sum += i.op->flops.value * static_cast<double>(c.multiplicity);
        });
    return sum;
}

/// Biases of products are counted where they are added, which depends on the split.
void expect_equal_work(const StepGraph& split, const StepGraph& whole) {
    EXPECT_NEAR(products(split) / products(whole), 1, 0.02);
}

/// How often each element of each parameter is updated over all ranks: `copies` times.
void expect_parameters_covered(const StepGraph& graph, const model::Model& model, int copies_of_whole) {
    std::map<std::int32_t, std::int64_t> elements;
    for (const RankClass& c : graph.classes)
        for_each_op(graph, c.program, [&](const OpInstance& i) {
            const auto* compute = std::get_if<Compute>(&i.op->kind);
            if (compute == nullptr || !std::holds_alternative<OptimizerUpdate>(*compute)) return;
            for (const Write& write : i.op->out) {
                const Tensor& tensor = graph.tensor(write.tensor);
                if (tensor.role == Role::parameter && tensor.parameter.is_valid())
                    elements[tensor.parameter.value] += tensor.elements() * c.multiplicity;
            }
        });
    for (const auto& [id, count] : elements) {
        const std::int64_t whole = model.parameters[static_cast<std::size_t>(id)].elements();
        EXPECT_EQ(count % whole, 0) << model.parameters[static_cast<std::size_t>(id)].name;
        EXPECT_GE(count / whole, copies_of_whole);
    }
    if (!elements.empty()) { EXPECT_EQ(elements.size(), model.parameters.size()); }
}

/// Over all ranks, every element of every parameter's gradient is reduced equally often: once for each copy.
void expect_covered_equally(const StepGraph& graph, const model::Model& model) {
    std::vector<std::vector<int>> change;
    for (const model::Parameter& parameter : model.parameters)
        change.emplace_back(static_cast<std::size_t>(parameter.elements()) + 1, 0);
    for (int rank = 0; rank < graph.mesh.ranks(); ++rank)
        for (const TensorId id : reduced_gradients_of(graph, graph.rank_class(rank)))
            for (const ParameterRun& run : parameter_runs(graph, id, rank)) {
                ++change[run.parameter.index()][static_cast<std::size_t>(run.global)];
                --change[run.parameter.index()][static_cast<std::size_t>(run.global + run.count)];
            }
    for (std::size_t p = 0; p < change.size(); ++p) {
        EXPECT_GE(change[p].front(), 1) << model.parameters[p].name;
        for (std::size_t i = 1; i + 1 < change[p].size(); ++i)
            ASSERT_EQ(change[p][i], 0) << model.parameters[p].name << " from element " << i;
    }
}

std::string description(const plan::Plan& p) {
    const plan::Split& s = p.split;
    return fmt::format(
        "tp {} cp {} dp {} replica {} pp {} vpp {} passes {} {} sp {} {} recompute {} zero {} keep {} prefetch {} "
        "reshard "
        "{} overlap {}",
        p.mesh.tp, p.mesh.cp, p.mesh.dp, p.mesh.replica, p.mesh.pp, s.vpp, p.accumulation, to_string(s.schedule),
        s.sequence_parallel, to_string(s.context), to_string(s.recompute), s.zero, s.zero_keep, s.prefetch,
        s.reshard_after_forward, p.overlap);
}

TEST(SplitPlans, tensor_parallel_splits_the_work_and_passes_the_check) {
    for (const bool rotary : {false, true})
        for (const int tp : {2, 4}) {
            const model::Model model = gpt(2, true, rotary);
            const StepGraph graph = build_plan(model, plan_of({.tp = tp, .dp = 2}));
            check(graph);
            plan::Plan whole = plan_of({});
            whole.micro_batch = 4;
            expect_equal_work(graph, build_plan(model, whole));
            expect_parameters_covered(graph, model, 2);
        }
}

TEST(SplitPlans, sequence_parallel_replaces_all_reduces_by_gathers_and_scatters) {
    const model::Model model = gpt(2, true, true);
    plan::Plan plan = plan_of({.tp = 4});
    plan.split.sequence_parallel = true;
    const StepGraph graph = build_plan(model, plan);
    check(graph);
    std::map<std::string, int> kinds;
    for_each_op(graph, graph.classes[0].program, [&](const OpInstance& i) {
        if (i.op->layer.is_valid() && std::holds_alternative<Collective>(i.op->kind))
            ++kinds[std::string(kind_name(*i.op))];
    });
    // Forward: 4 scatters and gathers a pass of two blocks, an embedding's scatter, the output's gather; loss: two
    // sums.
    EXPECT_EQ(kinds["all_reduce"], 2 * 4);
    EXPECT_GT(kinds["reduce_scatter"], 0);
    EXPECT_GT(kinds["all_gather"], kinds["reduce_scatter"]);
}

TEST(SplitPlans, pipelines_pass_the_check_in_every_schedule) {
    const model::Model model = gpt(8);
    for (const plan::Schedule schedule :
         {plan::Schedule::gpipe, plan::Schedule::one_forward_one_backward, plan::Schedule::interleaved})
        for (const int pp : {2, 4}) {
            plan::Plan plan = plan_of({.tp = 2, .dp = 2, .pp = pp}, 8);
            plan.split.schedule = schedule;
            plan.split.vpp = schedule == plan::Schedule::interleaved ? 2 : 1;
            SCOPED_TRACE(std::string(to_string(schedule)) + " pp " + std::to_string(pp));
            const StepGraph graph = build_plan(model, plan);
            check(graph);
            plan::Plan whole = plan_of({}, 8);
            whole.micro_batch = 4;
            expect_equal_work(graph, build_plan(model, whole));
        }
}

TEST(SplitPlans, context_parallel_passes_the_check_and_has_equal_work) {
    for (const bool rotary : {false, true})
        for (const plan::ContextAlgorithm context :
             {plan::ContextAlgorithm::ring, plan::ContextAlgorithm::all_to_all}) {
            plan::Plan plan = plan_of({.tp = 2, .cp = 2, .dp = 2});
            plan.split.context = context;
            const model::Model model = gpt(2, true, rotary);
            const StepGraph graph = build_plan(model, plan);
            check(graph);
            plan::Plan whole = plan_of({});
            whole.micro_batch = 4;
            expect_equal_work(graph, build_plan(model, whole));
        }
}

TEST(SplitPlans, zero_shards_pass_the_check) {
    const model::Model model = gpt(4);
    for (const int zero : {1, 2, 3})
        for (const bool keep : {false, true})
            for (const int replica : {1, 2}) {
                plan::Plan plan = plan_of({.tp = 2, .dp = 3, .replica = replica});
                plan.split.zero = zero;
                plan.split.zero_keep = keep;
                plan.split.overlap_parameter_gather = keep;
                SCOPED_TRACE(zero);
                check(build_plan(model, plan));
                check(build_plan(model, plan, {}, Precision::bf16));
            }
}

TEST(SplitPlans, recomputation_passes_the_check_and_needs_less_memory) {
    const model::Model model = gpt(8);
    std::map<plan::Recompute, double> activations;
    plan::Framework framework;
    framework.attention = plan::AttentionAlgorithm::unfused;
    for (const plan::Recompute recompute : {plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full}) {
        plan::Plan plan = plan_of({.pp = 2}, 4);
        plan.split.recompute = recompute;
        const StepGraph graph = build_plan(model, plan, framework);
        check(graph);
        activations[recompute] = measure_memory(graph, graph.classes[0]).peak.activations.value;
    }
    EXPECT_LT(activations[plan::Recompute::selective], activations[plan::Recompute::none]);
    EXPECT_LT(activations[plan::Recompute::full], activations[plan::Recompute::selective]);
}

TEST(SplitPlans, hundreds_of_random_plans_pass_the_check) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto one_of = [&](std::initializer_list<int> values) {
        return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
    };
    int built = 0, tried = 0;
    while (built < 300 && ++tried < 5000) {
        plan::Plan plan = plan_of({.tp = one_of({1, 2, 4}),
                                   .cp = one_of({1, 2}),
                                   .dp = one_of({1, 2, 3, 4}),
                                   .replica = one_of({1, 1, 2}),
                                   .pp = one_of({1, 2, 4})},
                                  one_of({1, 2, 4, 8}));
        if (plan.mesh.ranks() > 64) continue;
        plan.split.schedule = static_cast<plan::Schedule>(one_of({0, 1, 2}));
        plan.split.vpp = plan.split.schedule == plan::Schedule::interleaved ? 2 : 1;
        plan.split.sequence_parallel = one_of({0, 1}) == 1;
        plan.split.async_tp = plan.split.sequence_parallel && one_of({0, 1}) == 1;
        plan.split.context = one_of({0, 1}) == 1 ? plan::ContextAlgorithm::ring : plan::ContextAlgorithm::all_to_all;
        plan.split.recompute = static_cast<plan::Recompute>(one_of({0, 1, 2}));
        plan.split.zero = one_of({0, 1, 2, 3});
        plan.split.zero_keep = one_of({0, 1}) == 1;
        plan.split.prefetch = one_of({0, 1, 2});
        plan.split.reshard_after_forward = one_of({0, 1}) == 1;
        plan.overlap = one_of({0, 1}) == 1;
        plan::Framework framework;
        framework.attention = static_cast<plan::AttentionAlgorithm>(one_of({0, 1}));
        framework.bucket_storage = static_cast<plan::BucketStorage>(one_of({0, 1}));
        if (one_of({0, 1}) == 1) framework.wire_dtype = DType::bf16;
        const model::Model model = gpt(8, one_of({0, 1}) == 1, one_of({0, 1}) == 1);
        try {
            plan::check_plan(plan, model);
        } catch (const InputError&) { continue; }
        SCOPED_TRACE(description(plan));
        const StepGraph graph =
            build_plan(model, plan, framework, one_of({0, 1}) == 1 ? Precision::bf16 : Precision::fp32);
        ASSERT_NO_THROW(check(graph));
        if (plan.mesh.ranks() <= 16) expect_covered_equally(graph, model);
        plan::Plan whole = plan_of({}, plan.accumulation);
        whole.micro_batch = plan.micro_batch * plan.mesh.replicas();
        expect_equal_work(graph, build_plan(model, whole, framework));
        ++built;
    }
    EXPECT_EQ(built, 300) << "of " << tried;
}

}  // namespace
}  // namespace lockstep::step::test
