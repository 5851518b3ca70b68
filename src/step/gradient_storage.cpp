// The tensors in which parameters and gradients are gathered and travel.
#include <fmt/format.h>

#include "step/assembly.hpp"
#include "step/precision.hpp"

namespace lockstep::step {

namespace {

DType wire_dtype(const Assembly& a) {
    const plan::Framework& framework = a.input.framework;
    if (framework.wire_as_computed) return a.activation();
    return framework.wire_dtype.value_or(gradient_dtype(a.input.precision));
}

TensorId add_flat(Assembly& a, std::string name, std::int64_t elements, DType dtype, Role role, Lifetime lifetime) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = {elements};
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.lifetime = lifetime;
    return a.graph.add(std::move(tensor));
}

/// This rank's part of a flat tensor. Communicators count their ranks with cp innermost, dp outermost.
TensorId add_part(Assembly& a, GradientSum sum, std::string name, TensorId flat, DType dtype, Role role,
                  Lifetime lifetime) {
    Tensor part;
    part.name = std::move(name);
    const std::vector<plan::Axis> axes = a.shard_axes(sum);
    part.shape = {a.graph.tensor(flat).elements() / a.extent(axes)};
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) part.shards.push_back({0, *axis});
    part.dtype = dtype;
    part.role = role;
    part.lifetime = lifetime;
    part.part_of = flat;
    return a.graph.add(std::move(part));
}

std::int64_t members_end(const Assembly& a, const GradientGroup& group) {
    return group.first_element.back() + local_shape(a, group.parameters.back()).elements();
}

void make_bucket(Assembly& a, Chunk& chunk, GradientGroup& group) {
    const DType dtype = gradient_dtype(a.input.precision);
    // Frameworks keep their buckets from step to step.
    if (has_gradient_views(a))
        group.gradients =
            add_flat(a, group.name + ".gradients", group.elements, dtype, Role::gradient, Lifetime::carried);
    group.storage = has_gradient_copies(a)
                        ? add_flat(a, group.name, group.elements, wire_dtype(a), Role::communication, Lifetime::carried)
                        : group.gradients;
    if (has_gradient_views(a)) return;
    for (std::size_t slot = 0; slot < group.parameters.size(); ++slot) {
        const Tensor parameter = a.graph.tensor(a.tensors_of(chunk, group.parameters[slot]).parameter);
        group.parts.push_back(a.graph.add_view(fmt::format("{}[{}]", group.name, parameter.name), group.storage,
                                               group.first_element[slot], parameter.shape, parameter.layout));
    }
}

void make_sharded(Assembly& a, GradientGroup& group) {
    const DType dtype = gradient_dtype(a.input.precision);
    const bool each_pass = scatters_each_pass(a, group.sum);
    const Lifetime lifetime = each_pass ? Lifetime::micro_batch : Lifetime::step;
    group.gradients = add_flat(a, group.name + ".gradients", group.elements, dtype, Role::gradient, lifetime);
    group.storage = wire_dtype(a) == dtype
                        ? group.gradients
                        : add_flat(a, group.name, group.elements, wire_dtype(a), Role::communication, lifetime);
    const std::int64_t end = members_end(a, group);
    if (end < group.elements)
        group.padding =
            a.graph.add_view(group.name + ".padding", group.gradients, end, {group.elements - end}, Layout::row_major);
    const bool is_summed = each_pass && a.passes() > 1;
    const bool is_cast = wire_dtype(a) != dtype;
    group.scattered = add_part(a, group.sum, group.name + ".scattered", group.gradients, wire_dtype(a), Role::gradient,
                               is_summed || is_cast ? Lifetime::micro_batch : Lifetime::step);
    group.shard = is_summed || is_cast ? add_part(a, group.sum, group.name + ".gradient_shard", group.gradients, dtype,
                                                  Role::gradient, Lifetime::step)
                                       : group.scattered;
}

/// A view of a parameter's place in a flat tensor.
TensorId view_of(Assembly& a, const GradientGroup& group, TensorId flat, model::ParameterId id, std::string name) {
    for (std::size_t slot = 0; slot < group.parameters.size(); ++slot)
        if (group.parameters[slot] == id) {
            const TensorId view = a.graph.add_view(std::move(name), flat, group.first_element[slot], local_shape(a, id),
                                                   Layout::row_major);
            a.graph.graph().tensors[view.index()].parameter = id;
            return view;
        }
    return TensorId{};
}

}  // namespace

bool has_gradient_views(const Assembly& a) {
    return a.zero() > 0 || a.input.framework.bucket_storage == plan::BucketStorage::view;
}

bool has_gradient_copies(const Assembly& a) {
    return !has_gradient_views(a) || wire_dtype(a) != gradient_dtype(a.input.precision);
}

bool keeps_parameters(const Assembly& a) {
    return a.split().zero_keep || (a.mesh().pp > 1 && !a.split().reshard_after_forward);
}

bool scatters_each_pass(const Assembly& a, GradientSum sum) {
    return a.zero() >= 2 && !a.split().zero_keep && sum != GradientSum::over_stages;
}

void make_parameter_storage(Assembly& a, Chunk& chunk) {
    if (a.zero() == 0) return;
    const Lifetime lifetime = a.zero() < 3          ? Lifetime::carried
                              : keeps_parameters(a) ? Lifetime::step
                                                    : Lifetime::micro_batch;
    const DType dtype = parameter_dtype(a.input.precision);
    for (GradientGroup& group : chunk.groups.groups) {
        group.flat_parameters =
            add_flat(a, group.name + ".parameters", group.elements, dtype, Role::parameter, lifetime);
        group.parameter_shard = add_part(a, group.sum, group.name + ".parameter_shard", group.flat_parameters, dtype,
                                         Role::parameter, Lifetime::carried);
        a.graph.graph().tensors[group.parameter_shard.index()].initial.kind = Initial::Kind::part_of;
    }
}

void make_gradient_storage(Assembly& a, Chunk& chunk) {
    for (GradientGroup& group : chunk.groups.groups) {
        if (!group.is_trained) continue;
        if (a.zero() > 0)
            make_sharded(a, group);
        else
            make_bucket(a, chunk, group);
    }
}

TensorId parameter_view(Assembly& a, Chunk& chunk, model::ParameterId id, std::string name) {
    const GradientGroup* group = chunk.groups.of(id);
    if (group == nullptr || !group->flat_parameters.is_valid()) return TensorId{};
    return view_of(a, *group, group->flat_parameters, id, std::move(name));
}

TensorId gradient_view(Assembly& a, Chunk& chunk, model::ParameterId id, std::string name) {
    const GradientGroup* group = chunk.groups.of(id);
    if (group == nullptr || !group->gradients.is_valid()) return TensorId{};
    return view_of(a, *group, group->gradients, id, std::move(name));
}

}  // namespace lockstep::step
