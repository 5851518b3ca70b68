#include "step/builder.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/backward_ops.hpp"
#include "step/forward_ops.hpp"
#include "step/model_tensors.hpp"
#include "step/optimizer_ops.hpp"
#include "step/precision.hpp"

namespace lockstep::step {

namespace {

void check_input(const BuildInput& input) {
    const plan::Plan& plan = input.plan;
    const plan::Mesh& mesh = plan.mesh;
    parameter_dtype(input.precision);
    if (mesh.tp != 1 || mesh.pp != 1 || mesh.cp != 1 || mesh.ep != 1)
        throw InputError(fmt::format(
            "a step of tp={} pp={} cp={} ep={} can't be built (this version splits over dp only); use 1 for each",
            mesh.tp, mesh.pp, mesh.cp, mesh.ep));
    if (mesh.dp < 1 || plan.micro_batch < 1 || plan.accumulation < 1)
        throw InputError(fmt::format("dp {}, micro-batch {} and accumulation {} must be at least 1", mesh.dp,
                                     plan.micro_batch, plan.accumulation));
    if (input.placement.ranks != mesh.ranks())
        throw InputError(fmt::format("the plan has {} ranks but they are placed as {}; place them all", mesh.ranks(),
                                     input.placement.ranks));
    const auto& layers = input.model.layers;
    if (layers.empty() || !std::holds_alternative<model::SoftmaxLoss>(layers.back().kind))
        throw InputError(
            fmt::format("model {} doesn't end in a loss; make softmax_loss its last layer", input.model.name));
}

/// The blocks of a step in which everything is on one stage.
struct Blocks {
    BlockId input, weights, forward, backward, gradient_sync, optimizer;
};

Blocks fill_blocks(Assembly& a) {
    Blocks blocks;
    GraphWriter& graph = a.graph;
    auto open = [&](const char* name, Phase phase) {
        const BlockId block = graph.add_block(name, phase);
        graph.open(block);
        return block;
    };
    mark_gradient_flow(a);
    blocks.input = make_inputs(a);
    make_parameters(a);
    make_loss_scale(a);
    blocks.weights = open("weights", Phase::forward);
    cast_working_copies(a);
    pack_weights(a);
    make_buckets(a);
    make_gradients(a);
    blocks.forward = open("forward", Phase::forward);
    add_forward(a);
    blocks.backward = open("backward", Phase::backward);
    add_backward(a);
    blocks.gradient_sync = open("gradient_sync", Phase::gradient_sync);
    finish_buckets(a);
    blocks.optimizer = open("optimizer", Phase::optimizer);
    add_optimizer(a);
    return blocks;
}

/// Weights once, then every micro-batch's input, forward and backward, then what happens once at the end.
Program make_program(const Assembly& a, const Blocks& blocks) {
    Program program;
    auto issue = [&](BlockId block, int micro_batch) {
        if (block.is_valid() && !a.graph.is_empty(block)) program.issues.push_back({block, micro_batch, 0});
    };
    issue(blocks.weights, 0);
    for (int m = 0; m < a.passes(); ++m) {
        issue(blocks.input, m);
        issue(blocks.forward, m);
        issue(blocks.backward, m);
    }
    issue(blocks.gradient_sync, a.passes() - 1);
    issue(blocks.optimizer, a.passes() - 1);
    return program;
}

void describe(const BuildInput& input, StepGraph& graph) {
    const plan::Plan& plan = input.plan;
    graph.name = input.model.name;
    graph.mesh = plan.mesh;
    graph.placement = input.placement;
    graph.precision = input.precision;
    graph.micro_batch = plan.micro_batch;
    graph.micro_batches = plan.accumulation;
    graph.global_batch = plan.global_batch();
    graph.seed = input.seed;
    graph.run_ahead = input.framework.run_ahead;
    graph.is_blocking_launch = input.framework.launch == plan::Launch::blocking;
    const double samples = static_cast<double>(plan.micro_batch) * plan.accumulation;
    graph.model_flops = Flops{2.0 * 3.0 * static_cast<double>(model::forward_multiply_adds(input.model)) * samples};
}

}  // namespace

StepGraph build_step(const BuildInput& input) {
    check_input(input);
    Assembly a(input);
    describe(input, a.graph.graph());
    const Blocks blocks = fill_blocks(a);
    StepGraph& graph = a.graph.graph();
    graph.classes.push_back({"all", make_program(a, blocks), input.plan.mesh.ranks(), 0});
    graph.class_of_stage = {RankClassId{0}};
    graph.loss = a.loss;
    return a.graph.take();
}

}  // namespace lockstep::step
