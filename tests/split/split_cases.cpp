#include "split/split_cases.hpp"

#include <fmt/format.h>

#include "backend/backend.hpp"
#include "model/gpt.hpp"
#include "step/builder.hpp"
#include "step/check.hpp"

namespace lockstep::split {

namespace {

model::Transformer small_sizes() {
    model::Transformer t;
    t.layers = 4;
    t.hidden = 32;
    t.heads = t.kv_heads = 4;
    t.head_dim = 8;
    t.ffn = 64;
    t.vocab = 256;
    t.seq_len = t.positions = 16;
    t.dropout = 0.1;
    return t;
}

plan::Plan plan_of(const plan::Mesh& mesh, const plan::Split& split, int passes) {
    plan::Plan plan;
    plan.mesh = mesh;
    plan.split = split;
    plan.micro_batch = 2;
    plan.accumulation = passes;
    plan.bucket = plan.first_bucket = Bytes{16384};
    plan.optimizer = plan::Optimizer::adam;
    return plan;
}

step::StepGraph build(const model::Model& model, const plan::Plan& plan, plan::AttentionAlgorithm attention) {
    plan::Framework framework;
    framework.memory_format = backend::memory_format();
    framework.attention = attention;
    step::StepGraph graph = step::build_step({.model = model,
                                              .plan = plan,
                                              .framework = framework,
                                              .placement = {plan.mesh.ranks(), plan.mesh.ranks()},
                                              .precision = Precision::fp32,
                                              .seed = 5,
                                              .input = std::nullopt});
    step::check(graph);
    return graph;
}

}  // namespace

model::Model model_of(Case::Model model) {
    model::Transformer t = small_sizes();
    if (model == Case::Model::gpt) return model::build_gpt("gpt", t);
    if (model == Case::Model::llama || model == Case::Model::experts) {
        t.kv_heads = 2;
        t.gated = t.rotary = true;
        t.bias = t.tied = false;
        t.norm = model::Norm::Kind::rms;
        if (model == Case::Model::llama) return model::build_gpt("llama", t);
        t.experts.count = 4;
        t.experts.top_k = 2;
        t.experts.every = 2;
        return model::build_gpt("experts", t);
    }
    t.layers = 2;
    t.hidden = 768;
    t.heads = t.kv_heads = 12;
    t.head_dim = 64;
    t.ffn = 3072;
    t.vocab = 50304;
    t.seq_len = t.positions = 64;
    return model::build_gpt("gpt-small", t);
}

std::vector<Case> cases() {
    using plan::ContextAlgorithm;
    using plan::Recompute;
    using plan::Schedule;
    using Model = Case::Model;
    std::vector<Case> all;
    auto add = [&](std::string name, const plan::Mesh& mesh, const plan::Split& split, int passes = 2,
                   Model model = Model::gpt, plan::AttentionAlgorithm attention = plan::AttentionAlgorithm::flash) {
        all.push_back({std::move(name), mesh.ranks(), plan_of(mesh, split, passes), model, attention});
    };
    const auto unfused = plan::AttentionAlgorithm::unfused;
    for (const Model model : {Model::gpt, Model::llama}) {
        const std::string on = model == Model::gpt ? "gpt" : "llama";
        add(on + "_dp2", {.dp = 2}, {}, 2, model);
        add(on + "_tp2", {.tp = 2}, {}, 2, model);
        add(on + "_tp2_unfused", {.tp = 2}, {}, 2, model, unfused);
        add(on + "_tp2_sequence", {.tp = 2}, {.sequence_parallel = true}, 2, model);
        add(on + "_tp2_async", {.tp = 2}, {.sequence_parallel = true, .async_tp = true}, 2, model);
        add(on + "_pp2_gpipe", {.pp = 2}, {.schedule = Schedule::gpipe}, 4, model);
        add(on + "_pp2_1f1b", {.pp = 2}, {}, 4, model);
        add(on + "_pp2_interleaved", {.pp = 2}, {.schedule = Schedule::interleaved, .vpp = 2}, 4, model);
        add(on + "_cp2_ring", {.cp = 2}, {}, 2, model);
        add(on + "_cp2_all_to_all", {.cp = 2}, {.context = ContextAlgorithm::all_to_all}, 2, model);
        for (const int zero : {1, 2, 3}) add(fmt::format("{}_zero{}", on, zero), {.dp = 2}, {.zero = zero}, 2, model);
        add(on + "_zero3_keep", {.dp = 2}, {.zero = 3, .zero_keep = true}, 2, model);
        add(on + "_zero2_waiting", {.dp = 2}, {.zero = 2, .overlap_parameter_gather = false}, 2, model);
        add(on + "_recompute_selective", {.dp = 2}, {.recompute = Recompute::selective}, 2, model, unfused);
        add(on + "_recompute_full", {.dp = 2}, {.recompute = Recompute::full}, 2, model);
        add(on + "_tp2_pp2", {.tp = 2, .pp = 2}, {}, 4, model);
        add(on + "_pp4", {.pp = 4}, {}, 4, model);
        add(on + "_tp2_sequence_dp2_zero1", {.tp = 2, .dp = 2}, {.sequence_parallel = true, .zero = 1}, 2, model);
        add(on + "_tp2_sequence_dp2_zero3", {.tp = 2, .dp = 2}, {.sequence_parallel = true, .zero = 3}, 2, model);
        add(on + "_dp2_replica2_zero3", {.dp = 2, .replica = 2}, {.zero = 3}, 2, model);
        add(on + "_dp2_pp2_zero2_full", {.dp = 2, .pp = 2}, {.recompute = Recompute::full, .zero = 2}, 4, model);
        add(on + "_cp2_tp2_sequence", {.tp = 2, .cp = 2}, {.sequence_parallel = true}, 2, model);
        add(on + "_tp2_pp2_async_full", {.tp = 2, .pp = 2},
            {.sequence_parallel = true, .async_tp = true, .recompute = Recompute::full}, 4, model);
    }
    add("experts_dp2", {.dp = 2}, {}, 2, Model::experts);
    add("experts_ep2", {.ep = 2}, {}, 2, Model::experts);
    add("experts_ep2_full", {.ep = 2}, {.recompute = Recompute::full}, 2, Model::experts);
    add("experts_ep2_dp2", {.ep = 2, .dp = 2}, {}, 2, Model::experts);
    add("experts_ep2_dp2_zero1", {.ep = 2, .dp = 2}, {.zero = 1}, 2, Model::experts);
    add("experts_ep2_pp2", {.ep = 2, .pp = 2}, {}, 4, Model::experts);
    if (!backend::is_fast()) return all;
    add("gpt_small_tp2", {.tp = 2}, {}, 1, Model::gpt_small);
    add("gpt_small_pp2", {.pp = 2}, {}, 2, Model::gpt_small);
    add("gpt_small_zero3", {.dp = 2}, {.zero = 3}, 1, Model::gpt_small);
    add("gpt_small_tp2_pp2", {.tp = 2, .pp = 2}, {.sequence_parallel = true}, 2, Model::gpt_small);
    return all;
}

drive::NumericReport run_case(world::World& world, const Case& one) {
    const model::Model model = model_of(one.model);
    plan::Plan alone = one.plan;
    alone.micro_batch *= alone.mesh.replicas();
    alone.mesh = {};
    alone.split = {};
    return drive::check_numeric(world, backend::make_executor, build(model, one.plan, one.attention),
                                build(model, alone, one.attention));
}

Allocation allocation_of(world::World& world, const Case& one) {
    const step::StepGraph graph = build(model_of(one.model), one.plan, one.attention);
    const auto executor = backend::make_executor(world);
    executor->prepare(graph);
    const step::MemoryUse use = executor->memory();
    const step::MemoryUse predicted = step::measure_memory(graph, graph.rank_class(world.rank())).peak;
    // Kernels' scratch is workspace that no graph knows of.
    return {use.total - (use.workspace - predicted.workspace), predicted.total};
}

}  // namespace lockstep::split
