#include "step/builder.hpp"

#include <fmt/format.h>

#include <set>

#include "base/error.hpp"
#include "step/backward_ops.hpp"
#include "step/chunks.hpp"
#include "step/forward_ops.hpp"
#include "step/fusion.hpp"
#include "step/model_tensors.hpp"
#include "step/optimizer_ops.hpp"
#include "step/precision.hpp"

namespace lockstep::step {

namespace {

void check_input(const BuildInput& input) {
    const plan::Plan& plan = input.plan;
    parameter_dtype(input.precision);
    if (plan.micro_batch < 1 || plan.accumulation < 1)
        throw InputError(
            fmt::format("micro-batch {} and accumulation {} must be at least 1", plan.micro_batch, plan.accumulation));
    plan::check_plan(plan, input.model);
    if (input.placement.ranks != plan.mesh.ranks())
        throw InputError(fmt::format("the plan has {} ranks but they are placed as {}; place them all",
                                     plan.mesh.ranks(), input.placement.ranks));
    const auto& layers = input.model.layers;
    if (layers.empty() || !std::holds_alternative<model::SoftmaxLoss>(layers.back().kind))
        throw InputError(
            fmt::format("model {} doesn't end in a loss; make softmax_loss its last layer", input.model.name));
    if (input.precision == Precision::fp16_amp && plan.split.zero == 3)
        throw InputError(
            "zero: 3 with fp16-amp isn't built (its gathers would carry fp32 parameters); use bf16 or zero: 2");
}

/// Blocks of one stage and of one chunk have plain names where there is but one.
class Blocks {
public:
    explicit Blocks(Assembly& a) : a_(a) {}
    BlockId open(const Chunk& chunk, const char* what, Phase phase) {
        return open(a_.chunks.size() == 1 ? what : fmt::format("chunk{}.{}", chunk.number, what), phase);
    }
    BlockId open(int stage, const char* what, Phase phase) {
        return open(a_.mesh().pp == 1 ? what : fmt::format("stage{}.{}", stage, what), phase);
    }

private:
    BlockId open(const std::string& name, Phase phase) {
        const BlockId block = a_.graph.add_block(name, phase);
        a_.graph.open(block);
        return block;
    }
    Assembly& a_;
};

/// Everything of a chunk that exists before its ops.
void make_tensors(Assembly& a, Chunk& chunk) {
    make_inputs(a, chunk);
    make_boundary_tensors(a, chunk);
    layout_groups(a, chunk);
    make_parameter_storage(a, chunk);
    make_parameters(a, chunk);
}

/// What happens once a step before the passes: casts, packed weights, parameters that are kept for all passes.
void fill_weights(Assembly& a, int stage) {
    cast_working_copies(a, stage);
    for (Chunk& chunk : a.chunks) {
        if (chunk.stage != stage) continue;
        pack_weights(a, chunk);
        if (a.zero() != 3 || !keeps_parameters(a)) continue;
        std::set<int> units;
        for (const model::LayerId id : chunk.layers)
            if (units.insert(a.layer(id).repeat_group).second) gather_unit(a, chunk, a.layer(id).repeat_group, "once");
    }
}

StageBlocks fill_blocks(Assembly& a, int stage) {
    Blocks blocks(a);
    StageBlocks made;
    for (Chunk& chunk : a.chunks)
        if (chunk.stage == stage) make_tensors(a, chunk);
    made.weights = blocks.open(stage, "weights", Phase::forward);
    fill_weights(a, stage);
    for (Chunk& chunk : a.chunks) {
        if (chunk.stage != stage) continue;
        make_gradient_storage(a, chunk);
        make_gradients(a, chunk);
        chunk.forward = blocks.open(chunk, "forward", Phase::forward);
        add_forward(a, chunk);
        chunk.backward = blocks.open(chunk, "backward", Phase::backward);
        add_backward(a, chunk);
        assign_slots(a, chunk);
    }
    made.gradient_sync = blocks.open(stage, "gradient_sync", Phase::gradient_sync);
    for (Chunk& chunk : a.chunks)
        if (chunk.stage == stage) finish_groups(a, chunk);
    made.optimizer = blocks.open(stage, "optimizer", Phase::optimizer);
    add_optimizer(a, stage);
    return made;
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
    const double samples = static_cast<double>(plan.global_batch()) / plan.mesh.ranks();
    graph.model_flops = Flops{2.0 * 3.0 * static_cast<double>(model::forward_multiply_adds(input.model)) * samples};
}

}  // namespace

StepGraph build_step(const BuildInput& input) {
    check_input(input);
    Assembly a(input);
    describe(input, a.graph.graph());
    make_chunks(a);
    mark_gradient_flow(a);
    make_loss_scale(a);
    const int stages = input.plan.mesh.pp;
    std::vector<StageBlocks> blocks;
    for (int stage = 0; stage < stages; ++stage) blocks.push_back(fill_blocks(a, stage));
    StepGraph& graph = a.graph.graph();
    for (int stage = 0; stage < stages; ++stage) {
        plan::Coordinates first;
        first.pp = stage;
        graph.classes.push_back({stages == 1 ? "all" : fmt::format("stage {}", stage),
                                 make_program(a, stage, blocks[static_cast<std::size_t>(stage)]),
                                 input.plan.mesh.ranks() / stages, input.plan.mesh.rank(first)});
        graph.class_of_stage.push_back(RankClassId{stage});
    }
    graph.loss = a.loss;
    if (input.framework.elementwise_fusion == plan::ElementwiseFusion::chains) fuse_elementwise(graph);
    return a.graph.take();
}

}  // namespace lockstep::step
