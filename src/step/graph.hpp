// The StepGraph: what should happen in one training step, for each class of ranks; executed for real and simulated
// alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "machine/placement.hpp"
#include "plan/mesh.hpp"
#include "step/op.hpp"
#include "step/tensor.hpp"

namespace lockstep::step {

/// Ranks that communicate: those that differ from a rank in `axes` only.
struct Communicator {
    std::string name;  ///< "dp", "tp" ...
    std::vector<plan::Axis> axes;
    std::int64_t size = 1;
    std::vector<int> stages;  ///< with pp among the axes: the stages that take part, ascending; empty: all
};
/// The ranks of `rank`'s communicator, ascending; empty when the rank takes no part in it.
std::vector<int> members(const plan::Mesh& mesh, const Communicator& communicator, int rank);

/// The flat list of ops of one pipeline chunk in one phase.
struct Block {
    std::string name;
    Phase phase = Phase::forward;
    std::vector<Op> ops;
    std::int32_t first_op = 0;  ///< number of its first op among the ops of all blocks
};
using BlockId = Id<Block>;

/// A rank issues a block for a micro-batch of a chunk.
struct Issue {
    BlockId block;
    std::int32_t micro_batch = 0;
    std::int32_t chunk = 0;
};
struct Program {
    std::vector<Issue> issues;
};

/// Ranks with equal programs.
struct RankClass {
    std::string name;  ///< "all", "stage 3"
    Program program;
    std::int64_t multiplicity = 1;
    int representative = 0;  ///< one of its ranks
};
using RankClassId = Id<RankClass>;

struct StepGraph {
    std::string name;
    plan::Mesh mesh;
    machine::Placement placement;
    Precision precision = Precision::fp32;
    std::int64_t micro_batch = 1;
    int micro_batches = 1;  ///< passes per step (accumulation)
    std::int64_t global_batch = 1;
    std::uint64_t seed = 1;
    int run_ahead = 1024;  ///< ops the host may be ahead of the device
    bool is_blocking_launch = false;
    Flops model_flops;  ///< of one step of one rank: 2 x multiply-adds x 3, for MFU
    std::vector<Tensor> tensors;
    std::vector<Stream> streams;
    std::vector<Communicator> communicators;
    std::vector<Block> blocks;
    std::vector<RankClass> classes;
    std::vector<RankClassId> class_of_stage;  ///< by pp coordinate
    TensorId loss;                            ///< fp32 [1]; of the last stage
    /// What the optimizer reads: one of each trained parameter, or of each flat tensor whose views are parameters.
    std::vector<TensorId> reduced_gradients;

    const Tensor& tensor(TensorId id) const { return tensors[id.index()]; }
    const Block& block(BlockId id) const { return blocks[id.index()]; }
    const Stream& stream(StreamId id) const { return streams[id.index()]; }
    const RankClass& rank_class(int rank) const {
        return classes[class_of_stage[static_cast<std::size_t>(mesh.coordinates(rank).pp)].index()];
    }
    std::int32_t op_count() const;            ///< of all blocks together
    const Op& op(std::int32_t number) const;  ///< by number among the ops of all blocks
};

/// Place of a peer in `rank`'s communicator. Throws LogicError for one that is outside of it.
int peer_member(const StepGraph& graph, int rank, CommunicatorId communicator, const Peer& peer);

/// One op as a rank issues it.
struct OpInstance {
    const Op* op = nullptr;
    std::int32_t number = 0;  ///< among the ops of all blocks
    std::int32_t micro_batch = 0;
    std::int32_t chunk = 0;
};

/// Calls f(TensorId, micro-batch, const Write*) for everything an op reads (no Write) and writes. Messages may be of
/// other micro-batches than their op.
template <class F>
void for_each_operand(const OpInstance& instance, F&& f) {
    if (const auto* group = std::get_if<P2PGroup>(&instance.op->kind)) {
        for (const Message& m : group->sends) f(m.tensor, instance.micro_batch + m.micro_batch_offset, nullptr);
        for (const Message& m : group->receives) {
            const Write write{m.tensor, Access::overwrite};
            f(m.tensor, instance.micro_batch + m.micro_batch_offset, &write);
        }
        return;
    }
    for (const TensorId id : instance.op->in) f(id, instance.micro_batch, nullptr);
    for (const Write& write : instance.op->out) f(write.tensor, instance.micro_batch, &write);
}

/// The same, and for what the op comes after without reading it.
template <class F>
void for_each_dependence(const OpInstance& instance, F&& f) {
    for (const TensorId id : instance.op->after) f(id, instance.micro_batch, nullptr);
    for_each_operand(instance, f);
}

/// Calls f(OpInstance) for every op of one step in issue order; ops for the last micro-batch only are left out
/// elsewhere.
template <class F>
void for_each_op(const StepGraph& graph, const Program& program, F&& f) {
    for (const Issue& issue : program.issues) {
        const Block& block = graph.block(issue.block);
        for (std::size_t i = 0; i < block.ops.size(); ++i) {
            const Op& op = block.ops[i];
            if (op.is_last_micro_batch_only && issue.micro_batch != graph.micro_batches - 1) continue;
            f(OpInstance{&op, block.first_op + static_cast<std::int32_t>(i), issue.micro_batch, issue.chunk});
        }
    }
}

}  // namespace lockstep::step
