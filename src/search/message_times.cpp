#include "search/message_times.hpp"

#include "step/graph.hpp"

namespace lockstep::search {

std::vector<Seconds> message_times(const Subject& subject, const plan::Mesh& mesh, Bytes bytes) {
    step::StepGraph graph;
    graph.mesh = mesh;
    graph.placement = subject.placement;
    step::Tensor tensor;
    tensor.shape = {static_cast<std::int64_t>(bytes.value)};
    tensor.dtype = DType::uint8;
    graph.tensors.push_back(tensor);
    graph.communicators.push_back({"pp", {plan::Axis::pp}, mesh.pp, {}});
    step::P2PGroup group{step::CommunicatorId{0}, {}, {}};
    group.sends.push_back({{plan::Axis::pp, 1, true}, step::TensorId{0}, 0, 0});
    step::Op op;
    op.name = "message";
    op.kind = group;
    op.bytes = bytes;
    std::vector<Seconds> times;
    for (int stage = 0; stage < mesh.pp; ++stage) {
        plan::Coordinates first;
        first.pp = stage;
        const auto time = subject.costs.communication(graph, mesh.rank(first), {&op, 0, 0, 0});
        times.push_back(time.latency + time.transfer);
    }
    return times;
}

}  // namespace lockstep::search
