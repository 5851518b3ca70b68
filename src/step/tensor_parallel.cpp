#include "step/tensor_parallel.hpp"

namespace lockstep::step {

using plan::Axis;
using plan::Spread;

namespace {

Op& add_collective(Assembly& a, std::string name, CollectiveKind kind, Reduction reduction, TensorId from, TensorId to,
                   model::LayerId layer) {
    const CommunicationLane lane = a.lane("tp", {Axis::tp});
    const Tensor& counted = a.graph.tensor(kind == CollectiveKind::reduce_scatter ? to : from);
    const Collective collective{kind, lane.communicator, reduction, counted.elements(), counted.dtype};
    Op& op = a.graph.add_op_on(lane.stream, std::move(name), collective, {from},
                               {{to, from == to ? Access::update : Access::overwrite}});
    op.layer = layer;
    return op;
}

}  // namespace

TensorId gather_sequence(Assembly& a, std::string name, TensorId part, model::LayerId layer) {
    const TensorId whole = a.add_like(name, part);
    Tensor& tensor = a.graph.graph().tensors[whole.index()];
    tensor.shape.extents.front() *= a.mesh().tp;
    std::erase_if(tensor.shards, [](const Shard& s) { return s.axis == Axis::tp && s.dimension == 0; });
    add_collective(a, std::move(name), CollectiveKind::all_gather, Reduction::sum, part, whole, layer);
    return whole;
}

TensorId reduce_sums(Assembly& a, std::string name, TensorId sums, Spread to, model::LayerId layer) {
    if (to != Spread::sequence) {
        all_reduce_over_tp(a, name + ".all_reduce", sums, Reduction::sum, layer);
        return sums;
    }
    const TensorId part = a.add_like(name, sums);
    Tensor& tensor = a.graph.graph().tensors[part.index()];
    tensor.shape.extents.front() /= a.mesh().tp;
    // Behind the other shards of the sequence: tp splits what a context-parallel rank holds.
    auto at = tensor.shards.begin();
    while (at != tensor.shards.end() && at->dimension == 0) ++at;
    tensor.shards.insert(at, {0, Axis::tp});
    add_collective(a, name + ".reduce_scatter", CollectiveKind::reduce_scatter, Reduction::sum, sums, part, layer);
    return part;
}

void all_reduce_over_tp(Assembly& a, std::string name, TensorId tensor, Reduction reduction, model::LayerId layer) {
    add_collective(a, std::move(name), CollectiveKind::all_reduce, reduction, tensor, tensor, layer);
}

TensorId whole_input(Assembly& a, Chunk& chunk, model::LayerId id, const char* why) {
    const TensorId source = a.layers[id.index()].source;
    const model::LayerId from = a.layer(id).inputs[0];
    const bool is_part = from.is_valid() && a.splits[from.index()].output == Spread::sequence &&
                         a.splits[id.index()].input == Spread::whole && a.mesh().tp > 1;
    if (!is_part) return source;
    TensorId& gathered = chunk.gathered[from.value];
    if (!gathered.is_valid()) gathered = gather_sequence(a, a.layer(id).name + "." + why, source, id);
    return gathered;
}

}  // namespace lockstep::step
