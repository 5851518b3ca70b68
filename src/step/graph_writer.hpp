// Writes a step graph: tensors, streams, communicators, blocks and their ops, with costs filled in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "step/builder.hpp"

namespace lockstep::step {

/// Number of the random stream of a tensor or op: FNV-1a of its name, so that it does not depend on the plan.
std::uint64_t random_stream(std::string_view name);

class GraphWriter {
public:
    explicit GraphWriter(const BuildInput& input);

    TensorId add(Tensor tensor) {
        graph_.tensors.push_back(std::move(tensor));
        return TensorId{static_cast<std::int32_t>(graph_.tensors.size()) - 1};
    }
    /// `count` elements of `of` (or of what it is a view of) from `first_element` on, with its dtype, role and
    /// lifetime.
    TensorId add_view(std::string name, TensorId of, std::int64_t first_element, Shape shape, Layout layout);
    const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }

    StreamId compute_stream() const { return StreamId{0}; }
    StreamId add_stream(Stream stream);
    CommunicatorId add_communicator(Communicator communicator);

    BlockId add_block(std::string name, Phase phase);
    /// Ops go to this block from now on.
    void open(BlockId block) { open_ = block; }
    BlockId open_block() const { return open_; }
    const Block& block(BlockId id) const { return graph_.block(id); }
    bool is_empty(BlockId block) const { return graph_.block(block).ops.empty(); }
    /// Appends an op on the compute stream of the open block's phase; fills flops, bytes, math type and host time.
    Op& add_op(std::string name, OpKind kind, std::vector<TensorId> in, std::vector<Write> out, model::LayerId layer);
    /// The same on another stream.
    Op& add_op_on(StreamId stream, std::string name, OpKind kind, std::vector<TensorId> in, std::vector<Write> out);

    /// Appends an op as it is to the open block.
    Op& append(Op op) { return graph_.blocks[open_.index()].ops.emplace_back(std::move(op)); }

    StepGraph& graph() { return graph_; }
    /// Numbers the ops of all blocks and gives the graph away.
    StepGraph take();

private:
    const BuildInput& input_;
    StepGraph graph_;
    BlockId open_;
};

}  // namespace lockstep::step
