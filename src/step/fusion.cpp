#include "step/fusion.hpp"

#include <algorithm>
#include <vector>

namespace lockstep::step {

namespace {

const Compute* compute_of(const Op& op) { return std::get_if<Compute>(&op.kind); }
bool is_norm(const Op& op) { return compute_of(op) != nullptr && std::holds_alternative<Norm>(*compute_of(op)); }
bool can_be_fused(const Op& op) {
    const Compute* compute = compute_of(op);
    return compute != nullptr && (std::holds_alternative<Elementwise>(*compute) ||
                                  std::holds_alternative<Dropout>(*compute) || std::holds_alternative<Norm>(*compute));
}

/// By tensor: how many ops read it, itself or a view of it.
std::vector<int> count_readers(const StepGraph& graph) {
    std::vector<int> readers(graph.tensors.size(), 0);
    const auto read = [&](TensorId id) {
        ++readers[id.index()];
        if (const auto& view = graph.tensor(id).view) ++readers[view->of.index()];
    };
    for (const Block& block : graph.blocks)
        for (const Op& op : block.ops) {
            for (const TensorId id : op.in) read(id);
            // A collective or message may send it out of an ordinary result.
            for (const Write& write : op.out)
                if (write.access != Access::overwrite) read(write.tensor);
        }
    return readers;
}

}  // namespace

void fuse_elementwise(StepGraph& graph) {
    const std::vector<int> readers = count_readers(graph);
    for (Block& block : graph.blocks)
        for (std::size_t i = 1; i < block.ops.size(); ++i) {
            Op &before = block.ops[i - 1], &op = block.ops[i];
            if (!can_be_fused(before) || !can_be_fused(op) || (is_norm(before) && is_norm(op))) continue;
            const Write& result = before.out.front();
            if (result.access != Access::overwrite || std::ranges::find(op.in, result.tensor) == op.in.end()) continue;
            const Bytes size = graph.tensor(result.tensor).bytes();
            op.is_fused = true;
            op.host_time = Seconds{0};
            op.bytes -= size;
            if (readers[result.tensor.index()] == 1) before.bytes -= size;
        }
}

}  // namespace lockstep::step
