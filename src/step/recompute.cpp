#include "step/recompute.hpp"

#include <algorithm>

namespace lockstep::step {

namespace {

/// Appends copies of forward ops; writes to `output` go elsewhere, running statistics are left alone.
void repeat(Assembly& a, const Chunk& chunk, const OpRange& range, TensorId output) {
    TensorId scratch;
    for (std::size_t i = range.begin; i < range.end; ++i) {
        Op op = a.graph.block(chunk.forward).ops[i];
        op.name += ".recompute";
        op.phase = Phase::backward;
        std::erase_if(op.out, [&](const Write& write) {
            return write.access == Access::update && a.graph.tensor(write.tensor).role == Role::buffer;
        });
        for (Write& write : op.out) {
            if (write.tensor != output) continue;
            if (!scratch.is_valid()) scratch = a.add_like(a.graph.tensor(output).name + ".recomputed", output);
            write.tensor = scratch;
        }
        if (scratch.is_valid()) std::replace(op.in.begin(), op.in.end(), output, scratch);
        a.graph.append(std::move(op));
    }
}

}  // namespace

void recompute_block(Assembly& a, Chunk& chunk, int block) {
    const auto found = chunk.forward_of_block.find(block);
    if (found == chunk.forward_of_block.end()) return;
    const Op& last = a.graph.block(chunk.forward).ops[found->second.end - 1];
    repeat(a, chunk, found->second, last.out.front().tensor);
}

void recompute_layer(Assembly& a, Chunk& chunk, model::LayerId layer) {
    repeat(a, chunk, chunk.forward_of_layer.at(layer.value), a.layers[layer.index()].output);
}

}  // namespace lockstep::step
