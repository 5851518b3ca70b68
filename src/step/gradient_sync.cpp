// The ops that bring gradients and parameters from rank to rank.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "step/assembly.hpp"

namespace lockstep::step {

namespace {

/// Collectives of an accumulation happen in its last pass, or in each.
void place(const Assembly& a, const GradientGroup& group, Op& op) {
    op.phase = Phase::gradient_sync;
    op.is_last_micro_batch_only = !scatters_each_pass(a, group.sum);
}

void copy(Assembly& a, const GradientGroup& group, std::string name, Copy::Kind kind, TensorId from, TensorId to,
          double factor) {
    place(a, group,
          a.graph.add_op(std::move(name), Copy{kind, a.graph.tensor(to).elements(), factor, Seconds{}}, {from},
                         {{to, Access::overwrite}}, model::LayerId{}));
}

double mean_factor(const Assembly& a, GradientSum sum) { return 1.0 / a.extent(a.data_axes(sum)); }

/// A lane over data-parallel ranks; experts have their own.
CommunicationLane data_lane(Assembly& a, const GradientGroup& group, const char* name,
                            const std::vector<plan::Axis>& axes) {
    const bool is_apart = group.sum == GradientSum::of_experts;
    return a.lane(is_apart ? fmt::format("expert_{}", name) : name, axes);
}

void copy_in(Assembly& a, Chunk& chunk, const GradientGroup& group, std::size_t slot) {
    const model::ParameterId id = group.parameters[slot];
    copy(a, group, fmt::format("{}.bucket_in", a.parameter(id).name), Copy::Kind::bucket_in,
         a.tensors_of(chunk, id).gradient, group.parts[slot], mean_factor(a, group.sum));
}

void collective(Assembly& a, const GradientGroup& group, const CommunicationLane& lane, std::string name,
                CollectiveKind kind, Reduction reduction, TensorId from, TensorId to) {
    const bool is_whole_in = kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather;
    const Tensor& counted = a.graph.tensor(is_whole_in ? from : to);
    const Collective op{
        kind, lane.communicator, reduction, counted.elements(), counted.dtype, a.input.framework.collective_delay};
    place(a, group,
          a.graph.add_op_on(lane.stream, std::move(name), op, {from},
                            {{to, from == to ? Access::update : Access::overwrite}}));
}

/// The sums that come before the mean over data-parallel ranks.
void add_sums(Assembly& a, const GradientGroup& group) {
    if (group.sum == GradientSum::none || group.sum == GradientSum::of_experts) return;
    const CommunicationLane lane = group.sum == GradientSum::over_tp
                                       ? a.lane("tp", {plan::Axis::tp})
                                       : a.lane("embedding", {plan::Axis::pp}, {0, a.mesh().pp - 1});
    // Both stages know this sum by the parameter they share.
    const std::string name = group.sum == GradientSum::over_tp
                                 ? group.name + ".sum_over_tp"
                                 : a.parameter(group.parameters.front()).name + ".sum_over_stages";
    collective(a, group, lane, name, CollectiveKind::all_reduce, Reduction::sum, group.storage, group.storage);
}

void scatter(Assembly& a, const GradientGroup& group) {
    const CommunicationLane lane = data_lane(a, group, a.zero() == 3 ? "fsdp.scatter" : "dp", a.shard_axes(group.sum));
    collective(a, group, lane, group.name + ".reduce_scatter", CollectiveKind::reduce_scatter, Reduction::average,
               group.storage, group.scattered);
    if (a.mesh().replica > 1)
        collective(a, group, a.lane("replica", {plan::Axis::replica}), group.name + ".all_reduce",
                   CollectiveKind::all_reduce, Reduction::average, group.scattered, group.scattered);
}

/// A group's scatter is over: its part is added to the sum of the passes, and the memory of its gradients is free.
void finish_scatter(Assembly& a, const GradientGroup& group) {
    if (group.shard == group.scattered) {
        if (scatters_each_pass(a, group.sum))
            place(a, group,
                  a.graph.add_op(group.name + ".wait", StreamWait{}, {group.scattered}, {}, model::LayerId{}));
        return;
    }
    Op& op = a.graph.add_op(group.name + ".accumulate", Compute{Cast{a.graph.tensor(group.shard).elements()}},
                            {group.scattered}, {{group.shard, Access::accumulate_micro_batches}}, model::LayerId{});
    place(a, group, op);
    if (!scatters_each_pass(a, group.sum)) op.out[0].access = Access::overwrite;
}

/// Lets at most so many scatters be under way behind the one that was launched last: gradients must not pile up faster
/// than they are sent. Frameworks keep one block's beside that of the block at work.
void finish_scatters(Assembly& a, GradientGroups& all, std::size_t most) {
    while (all.scattering.size() > most) {
        finish_scatter(a, all.groups[all.scattering.front()]);
        all.scattering.erase(all.scattering.begin());
    }
}

/// Groups of the block that has most of them, or of one bucket.
std::size_t groups_of_a_unit(const Assembly& a, const GradientGroups& all) {
    if (a.zero() < 3) return 1;
    std::map<int, std::size_t> count;
    std::size_t most = 1;
    for (const GradientGroup& group : all.groups)
        if (group.is_trained) most = std::max(most, ++count[group.unit]);
    return most;
}

void launch(Assembly& a, GradientGroups& all, GradientGroup& group) {
    group.is_launched = true;
    if (!group.is_trained) return;
    if (group.padding.is_valid())
        place(a, group,
              a.graph.add_op(group.name + ".clear_padding", Compute{Fill{a.graph.tensor(group.padding).elements(), 0}},
                             {}, {{group.padding, Access::overwrite}}, model::LayerId{}));
    const bool is_mean_in_copy = a.zero() == 0;
    if (has_gradient_views(a) && has_gradient_copies(a))
        copy(a, group, group.name + ".bucket_in", Copy::Kind::bucket_in, group.gradients, group.storage,
             is_mean_in_copy ? mean_factor(a, group.sum) : 1);
    add_sums(a, group);
    if (a.zero() > 0) {
        scatter(a, group);
        all.scattering.push_back(static_cast<std::size_t>(&group - all.groups.data()));
        return finish_scatters(a, all, 2 * groups_of_a_unit(a, all));
    }
    const std::vector<plan::Axis> axes = a.data_axes(group.sum);
    if (axes.empty()) return;
    collective(a, group, data_lane(a, group, "dp", axes), group.name + ".all_reduce", CollectiveKind::all_reduce,
               has_gradient_copies(a) ? Reduction::sum : Reduction::average, group.storage, group.storage);
}

/// In order, as all ranks must agree on it: a group that is complete early waits for those before it. What stages share
/// waits for the end of the step: until then they may be in different passes.
void launch_complete(Assembly& a, GradientGroups& all) {
    for (GradientGroup& group : all.groups) {
        if (group.is_launched || group.sum == GradientSum::over_stages) continue;
        if (group.missing > 0 && group.is_trained) return;
        launch(a, all, group);
    }
}

}  // namespace

void gradient_is_ready(Assembly& a, Chunk& chunk, model::ParameterId id) {
    GradientGroup* group = chunk.groups.of(id);
    if (group == nullptr) return;
    --group->missing;
    if (!a.input.plan.overlap) return;
    if (!has_gradient_views(a))
        for (std::size_t slot = 0; slot < group->parameters.size(); ++slot)
            if (group->parameters[slot] == id) copy_in(a, chunk, *group, slot);
    launch_complete(a, chunk.groups);
}

void finish_pass(Assembly& a, Chunk& chunk) {
    if (!scatters_each_pass(a, GradientSum::none)) return;
    launch_complete(a, chunk.groups);
    finish_scatters(a, chunk.groups, 0);
}

void finish_groups(Assembly& a, Chunk& chunk) {
    GradientGroups& all = chunk.groups;
    for (GradientGroup& group : all.groups) {
        if (group.is_launched) continue;
        const bool is_copied_already = a.input.plan.overlap;
        if (!has_gradient_views(a) && !is_copied_already)
            for (std::size_t slot = 0; slot < group.parameters.size(); ++slot) copy_in(a, chunk, group, slot);
        launch(a, all, group);
    }
    finish_scatters(a, all, 0);
    if (a.zero() > 0 || !has_gradient_copies(a)) return;
    for (const GradientGroup& group : all.groups) {
        if (has_gradient_views(a)) {
            copy(a, group, group.name + ".bucket_out", Copy::Kind::bucket_out, group.storage, group.gradients, 1);
            continue;
        }
        for (std::size_t slot = 0; slot < group.parameters.size(); ++slot) {
            const model::ParameterId id = group.parameters[slot];
            copy(a, group, fmt::format("{}.bucket_out", a.parameter(id).name), Copy::Kind::bucket_out,
                 group.parts[slot], a.tensors_of(chunk, id).gradient, 1);
        }
    }
}

void gather_unit(Assembly& a, Chunk& chunk, int unit, const char* why, TensorId after) {
    for (const GradientGroup& group : chunk.groups.groups) {
        if (group.unit != unit) continue;
        const CommunicationLane lane = data_lane(a, group, "fsdp.gather", a.shard_axes(group.sum));
        const Tensor& part = a.graph.tensor(group.parameter_shard);
        const Collective gather{CollectiveKind::all_gather, lane.communicator, Reduction::sum, part.elements(),
                                part.dtype};
        Op& op = a.graph.add_op_on(lane.stream, fmt::format("{}.gather_{}", group.name, why), gather,
                                   {group.parameter_shard}, {{group.flat_parameters, Access::overwrite}});
        if (after.is_valid()) op.after.push_back(after);
    }
}

void gather_updated(Assembly& a, Chunk& chunk) {
    std::vector<TensorId> gathered;
    for (auto group = chunk.groups.groups.rbegin(); group != chunk.groups.groups.rend(); ++group) {
        const CommunicationLane lane = data_lane(a, *group, "dp", a.shard_axes(group->sum));
        const Tensor& part = a.graph.tensor(group->parameter_shard);
        const Collective gather{CollectiveKind::all_gather, lane.communicator, Reduction::sum, part.elements(),
                                part.dtype};
        a.graph.add_op_on(lane.stream, group->name + ".all_gather", gather, {group->parameter_shard},
                          {{group->flat_parameters, Access::overwrite}});
        gathered.push_back(group->flat_parameters);
    }
    if (a.split().overlap_parameter_gather || gathered.empty()) return;
    a.graph.add_op(chunk.groups.groups.front().name + ".wait_for_parameters", StreamWait{}, gathered, {},
                   model::LayerId{});
}

}  // namespace lockstep::step
