// The order in which a pipeline stage issues its blocks, and the messages between them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "step/chunks.hpp"

namespace lockstep::step {

namespace {

using Slot = plan::PipelineSlot;

/// A tensor of a micro-batch that leaves for, or comes from, the next stage around the ring.
struct Crossing {
    TensorId tensor;
    int offset = 0;  ///< of the stage at the other end
    int tag = 0;     ///< the chunk that it enters
    int micro_batch = 0;
};

class ProgramMaker {
public:
    ProgramMaker(Assembly& a, int stage) : a_(a), stage_(stage), order_(order_of_stage(a, stage)) {}

    Program make(const StageBlocks& blocks) {
        issue(blocks.weights, 0, 0);
        std::vector<std::optional<Slot>> next(order_.size());
        std::optional<Slot> forward, backward;
        for (std::size_t i = order_.size(); i-- > 0;) {
            std::optional<Slot>& same = order_[i].kind == Slot::Kind::forward ? forward : backward;
            next[i] = same;
            same = order_[i];
        }
        bool is_first_backward = true;
        if (forward) exchange(std::nullopt, arrival(*forward));
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const Slot& slot = order_[i];
            if (slot.kind == Slot::Kind::backward && is_first_backward) {
                exchange(std::nullopt, arrival(slot));
                is_first_backward = false;
            }
            const Chunk& chunk = chunk_of(slot);
            if (slot.kind == Slot::Kind::forward) issue(chunk.input, slot);
            issue(slot.kind == Slot::Kind::forward ? chunk.forward : chunk.backward, slot);
            exchange(departure(slot), next[i] ? arrival(*next[i]) : std::nullopt);
        }
        issue(blocks.gradient_sync, a_.passes() - 1, 0);
        issue(blocks.optimizer, a_.passes() - 1, 0);
        return std::move(program_);
    }

private:
    const Chunk& chunk_of(const Slot& slot) const {
        return a_.chunks[static_cast<std::size_t>(slot.chunk * a_.mesh().pp + stage_)];
    }
    void issue(BlockId block, int micro_batch, int chunk) {
        if (block.is_valid() && !a_.graph.is_empty(block)) program_.issues.push_back({block, micro_batch, chunk});
    }
    void issue(BlockId block, const Slot& slot) { issue(block, slot.micro_batch, slot.chunk); }

    /// What a pass leaves for another stage.
    std::optional<Crossing> departure(const Slot& slot) const {
        const Chunk& chunk = chunk_of(slot);
        if (slot.kind == Slot::Kind::forward)
            return crossing(chunk.is_last() ? TensorId{} : a_.layers[chunk.leaving.index()].output, 1, chunk.number + 1,
                            slot);
        return crossing(chunk.sent_gradient, -1, chunk.number - 1, slot);
    }
    /// What a pass waits for from another stage.
    std::optional<Crossing> arrival(const Slot& slot) const {
        const Chunk& chunk = chunk_of(slot);
        const bool is_forward = slot.kind == Slot::Kind::forward;
        return crossing(is_forward ? chunk.received : chunk.received_gradient, is_forward ? -1 : 1, chunk.number, slot);
    }
    static std::optional<Crossing> crossing(TensorId tensor, int offset, int tag, const Slot& slot) {
        if (!tensor.is_valid()) return std::nullopt;
        return Crossing{tensor, offset, tag, slot.micro_batch};
    }

    /// One group: a stage that sends and then receives would wait for another that does the same, around the ring.
    void exchange(const std::optional<Crossing>& sent, const std::optional<Crossing>& received) {
        if (!sent && !received) return;
        const int micro_batch = sent ? sent->micro_batch : received->micro_batch;
        const bool is_forward = sent ? sent->offset > 0 : received->offset < 0;
        const int ahead = sent && received ? received->micro_batch - sent->micro_batch : 0;
        const auto key = std::tuple(sent ? sent->tensor : TensorId{}, received ? received->tensor : TensorId{}, ahead);
        auto [found, is_new] = blocks_.try_emplace(key);
        if (is_new) found->second = make_block(sent, received, ahead, is_forward);
        issue(found->second, micro_batch, 0);
    }
    BlockId make_block(const std::optional<Crossing>& sent, const std::optional<Crossing>& received, int ahead,
                       bool is_forward) {
        const CommunicationLane lane = a_.lane(is_forward ? "pp.forward" : "pp.backward", {plan::Axis::pp});
        const bool wraps = a_.split().vpp > 1;
        P2PGroup group{lane.communicator, {}, {}};
        std::vector<TensorId> in;
        std::vector<Write> out;
        if (sent) {
            group.sends.push_back({{plan::Axis::pp, sent->offset, wraps}, sent->tensor, sent->tag, 0});
            in.push_back(sent->tensor);
        }
        if (received) {
            group.receives.push_back(
                {{plan::Axis::pp, received->offset, wraps}, received->tensor, received->tag, ahead});
            out.push_back({received->tensor, Access::overwrite});
        }
        const std::string name =
            fmt::format("stage{}.{}{}", stage_, is_forward ? "forward" : "backward", names(sent, received));
        const BlockId block = a_.graph.add_block(name, is_forward ? Phase::forward : Phase::backward);
        a_.graph.open(block);
        a_.graph.add_op_on(lane.stream, name, std::move(group), std::move(in), std::move(out));
        return block;
    }
    static std::string names(const std::optional<Crossing>& sent, const std::optional<Crossing>& received) {
        std::string text;
        if (sent) text += fmt::format(".send_to_chunk{}", sent->tag);
        if (received) text += fmt::format(".receive_in_chunk{}", received->tag);
        return text;
    }

    Assembly& a_;
    int stage_;
    std::vector<Slot> order_;
    Program program_;
    std::map<std::tuple<TensorId, TensorId, int>, BlockId> blocks_;
};

}  // namespace

Program make_program(Assembly& a, int stage, const StageBlocks& blocks) { return ProgramMaker(a, stage).make(blocks); }

}  // namespace lockstep::step
