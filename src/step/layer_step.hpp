// One layer of a chunk at hand: what the parts that write its ops share.
#pragma once

#include "step/assembly.hpp"
#include "step/layer_ops.hpp"

namespace lockstep::step {

struct LayerStep {
    Assembly& a;
    Chunk& chunk;
    model::LayerId id;
    const model::Layer& layer;
    LayerTensors& mine;

    LayerStep(Assembly& assembly, Chunk& c, model::LayerId i)
        : a(assembly), chunk(c), id(i), layer(assembly.layer(i)), mine(assembly.layers[i.index()]) {}

    plan::LayerSplit split() const { return a.splits[id.index()]; }
    TensorId working(std::size_t slot) const { return a.tensors_of(chunk, layer.parameters[slot]).working; }
    std::vector<TensorId> all_sources() const {
        std::vector<TensorId> sources;
        for (std::size_t slot = 0; slot < layer.inputs.size(); ++slot) sources.push_back(a.source(chunk, id, slot));
        return sources;
    }
    void emit(const std::string& what, OpKind op, std::vector<TensorId> in, std::vector<Write> out) const {
        a.graph.add_op(layer.name + "." + what, std::move(op), std::move(in), std::move(out), id);
    }
    /// An all-to-all of a tensor's equal parts among the ranks that differ in `axis`, on the lane of its name.
    void exchange(const std::string& what, plan::Axis axis, TensorId from, TensorId to) const {
        const CommunicationLane lane = a.lane(std::string(plan::to_string(axis)), {axis});
        const Tensor& tensor = a.graph.tensor(from);
        const Collective all_to_all{CollectiveKind::all_to_all, lane.communicator, Reduction::sum,
                                    tensor.elements() / a.mesh().extent(axis), tensor.dtype};
        Op& op = a.graph.add_op_on(lane.stream, layer.name + "." + what + ".all_to_all", all_to_all, {from},
                                   {{to, Access::overwrite}});
        op.layer = id;
    }
    /// A new tensor of one pass on this rank, of given local extents.
    TensorId add_local(const std::string& what, Shape shape, DType dtype, Role role = Role::activation) const {
        Tensor tensor;
        tensor.name = layer.name + "." + what;
        tensor.shape = std::move(shape);
        tensor.dtype = dtype;
        tensor.role = role;
        return a.graph.add(std::move(tensor));
    }
};

}  // namespace lockstep::step
