// Pipelines written by hand: no model, no plan.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "step/check.hpp"

namespace lockstep::step::test {

inline std::string refusal(const StepGraph& graph) {
    try {
        check(graph);
    } catch (const InputError& error) { return error.what(); }
    return "accepted";
}

/// A graph whose stages' blocks are written op by op, on a compute stream (0) and one for messages (1).
class HandWritten {
public:
    explicit HandWritten(int stages) {
        graph.mesh.pp = stages;
        graph.placement = {stages, stages};
        graph.communicators = {{"pp", {plan::Axis::pp}, stages, {}}};
        graph.streams = {{Stream::Lane::compute, {}, "compute"},
                         {Stream::Lane::communication, CommunicatorId{0}, "pp"}};
        for (int s = 0; s < stages; ++s) {
            graph.classes.push_back({"stage " + std::to_string(s), {}, 1, s});
            graph.class_of_stage.push_back(RankClassId{s});
        }
    }
    TensorId tensor(std::string name, std::int64_t elements, std::int32_t slots = 1,
                    Lifetime lifetime = Lifetime::micro_batch, Role role = Role::activation) {
        Tensor t;
        t.name = std::move(name);
        t.shape = {elements};
        t.slots = slots;
        t.lifetime = lifetime;
        t.role = role;
        if (lifetime == Lifetime::carried) t.initial.kind = Initial::Kind::one;
        graph.tensors.push_back(std::move(t));
        return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
    }
    BlockId block(std::string name, std::vector<Op> ops) {
        graph.blocks.push_back({std::move(name), Phase::forward, std::move(ops), graph.op_count()});
        return BlockId{static_cast<std::int32_t>(graph.blocks.size()) - 1};
    }
    void issue(int stage, BlockId block, int micro_batch = 0) {
        graph.classes[static_cast<std::size_t>(stage)].program.issues.push_back({block, micro_batch, 0});
    }
    void issue(int stage, Op op, int micro_batch = 0) {
        const std::string name = op.name;
        issue(stage, block(name, {std::move(op)}), micro_batch);
    }
    Op op(std::string name, OpKind kind, std::vector<TensorId> in, std::vector<Write> out) const {
        Op made;
        made.name = std::move(name);
        made.kind = std::move(kind);
        made.in = std::move(in);
        made.out = std::move(out);
        made.stream = StreamId{0};
        return made;
    }
    Op elementwise(std::string name, Elementwise::Kind kind, std::vector<TensorId> in, Write out) const {
        Elementwise e;
        e.kind = kind;
        e.count = graph.tensor(out.tensor).elements();
        return op(std::move(name), Compute{e}, std::move(in), {out});
    }
    Op messages(std::string name, std::vector<Message> sends, std::vector<Message> receives) const {
        Op made = op(std::move(name), P2PGroup{CommunicatorId{0}, sends, receives}, {}, {});
        made.stream = StreamId{1};
        for (const Message& m : sends) made.in.push_back(m.tensor);
        for (const Message& m : receives) made.out.push_back({m.tensor, Access::overwrite});
        return made;
    }
    Op all_reduce(std::string name, CommunicatorId communicator, TensorId tensor) const {
        const std::int64_t count = graph.tensor(tensor).elements();
        Op made = op(std::move(name),
                     Collective{CollectiveKind::all_reduce, communicator, Reduction::sum, count, DType::fp32}, {tensor},
                     {{tensor, Access::update}});
        made.stream = StreamId{1};
        return made;
    }

    StepGraph graph;
};

inline Message to_stage(int offset, TensorId tensor, int tag, int micro_batch_offset = 0, bool wraps = false) {
    return {{plan::Axis::pp, offset, wraps}, tensor, tag, micro_batch_offset};
}

enum class Order { gpipe, one_forward_one_backward };
struct PipelineOptions {
    int stages = 2;
    int micro_batches = 4;
    int ops = 8;  ///< forward ops of a stage
    std::int64_t elements = 1024;
    Order order = Order::one_forward_one_backward;
    bool is_short_of_copies = false;  ///< stage 0 has one copy less than passes in flight
};

/// Each stage runs `ops` ops, x a_0 -> a_1 ... a_ops, each with a weight; backward op k reads the gradient of a_k and
/// a_(k-1). Messages carry a_ops forward and the gradient of a_0 backward; where a rank sends and receives, it does
/// both in one group, of different micro-batches (Megatron-LM's send_forward_recv_backward).
class Pipeline : public HandWritten {
public:
    explicit Pipeline(const PipelineOptions& options) : HandWritten(options.stages), o_(options) {
        graph.micro_batches = o_.micro_batches;
        for (int s = 0; s < o_.stages; ++s) {
            warm_ = o_.order == Order::gpipe ? o_.micro_batches : std::min(o_.stages - 1 - s, o_.micro_batches);
            in_flight_ = std::min(warm_ + 1, o_.micro_batches);
            write_blocks(s);
            write_program(s);
        }
    }

private:
    static constexpr int forward_tag = 1, backward_tag = 2;

    std::string named(int s, const std::string& what, int k = -1) const {
        return "s" + std::to_string(s) + "." + what + (k < 0 ? "" : std::to_string(k));
    }
    void write_blocks(int s) {
        const std::int64_t n = o_.elements;
        const int copies = in_flight_ - (s == 0 && o_.is_short_of_copies ? 1 : 0);
        std::vector<TensorId> a, da, w, dw;
        for (int k = 0; k <= o_.ops; ++k) {
            const bool is_kept = k < o_.ops || s == o_.stages - 1;
            a.push_back(tensor(named(s, "a", k), n, is_kept ? copies : 1));
            da.push_back(tensor(named(s, "da", k), n));
        }
        for (int k = 0; k < o_.ops; ++k) {
            w.push_back(tensor(named(s, "w", k), n, 1, Lifetime::carried, Role::parameter));
            dw.push_back(tensor(named(s, "dw", k), n, 1, Lifetime::step, Role::gradient));
        }
        x_ = a.front(), y_ = a.back(), dx_ = da.front(), dy_ = da.back();
        std::vector<Op> forward, backward, update;
        if (s == 0) forward.push_back(op(named(s, "make"), Compute{Fill{n, 1}}, {}, {{x_, Access::overwrite}}));
        if (s == o_.stages - 1)
            backward.push_back(elementwise(named(s, "loss"), Elementwise::Kind::scale, {y_}, {dy_, Access::overwrite}));
        for (std::size_t k = 0; k < w.size(); ++k) {
            forward.push_back(elementwise(named(s, "forward", static_cast<int>(k)), Elementwise::Kind::add,
                                          {a[k], w[k]}, {a[k + 1], Access::overwrite}));
            update.push_back(elementwise(named(s, "update", static_cast<int>(k)), Elementwise::Kind::add, {w[k], dw[k]},
                                         {w[k], Access::overwrite}));
        }
        for (std::size_t k = w.size(); k-- > 0;) {
            backward.push_back(elementwise(named(s, "backward", static_cast<int>(k)), Elementwise::Kind::gelu_backward,
                                           {da[k + 1], a[k]}, {da[k], Access::overwrite}));
            backward.push_back(elementwise(named(s, "gradient", static_cast<int>(k)), Elementwise::Kind::scale,
                                           {da[k + 1]}, {dw[k], Access::accumulate_micro_batches}));
        }
        forward_ = block(named(s, "forward"), std::move(forward));
        backward_ = block(named(s, "backward"), std::move(backward));
        update_ = block(named(s, "update"), std::move(update));
    }
    void receive_forward(int s, int m) {
        if (s > 0) issue(s, messages(named(s, "receive_forward"), {}, {to_stage(-1, x_, forward_tag)}), m);
    }
    void send_forward(int s, int m) {
        if (s < o_.stages - 1) issue(s, messages(named(s, "send_forward"), {to_stage(1, y_, forward_tag)}, {}), m);
    }
    void receive_backward(int s, int m) {
        if (s < o_.stages - 1)
            issue(s, messages(named(s, "receive_backward"), {}, {to_stage(1, dy_, backward_tag)}), m);
    }
    void send_backward(int s, int m) {
        if (s > 0) issue(s, messages(named(s, "send_backward"), {to_stage(-1, dx_, backward_tag)}, {}), m);
    }
    void write_program(int s) {
        const int warm = std::min(warm_, o_.micro_batches), steady = o_.micro_batches - warm;
        for (int m = 0; m < warm; ++m) {
            receive_forward(s, m);
            issue(s, forward_, m);
            send_forward(s, m);
        }
        if (steady > 0) receive_forward(s, warm);
        for (int m = 0; m < steady; ++m) {
            issue(s, forward_, m + warm);
            if (s < o_.stages - 1)
                issue(s,
                      messages(named(s, "send_forward_receive_backward"), {to_stage(1, y_, forward_tag)},
                               {to_stage(1, dy_, backward_tag, -warm)}),
                      m + warm);
            issue(s, backward_, m);
            if (m == steady - 1)
                send_backward(s, m);
            else if (s > 0)
                issue(s,
                      messages(named(s, "send_backward_receive_forward"), {to_stage(-1, dx_, backward_tag)},
                               {to_stage(-1, x_, forward_tag, warm + 1)}),
                      m);
        }
        for (int m = steady; m < o_.micro_batches; ++m) {
            receive_backward(s, m);
            issue(s, backward_, m);
            send_backward(s, m);
        }
        issue(s, update_, o_.micro_batches - 1);
    }

    PipelineOptions o_;
    int warm_ = 0, in_flight_ = 1;
    TensorId x_, y_, dx_, dy_;
    BlockId forward_, backward_, update_;
};

inline Op& op_of(StepGraph& graph, const std::string& name) {
    for (Block& block : graph.blocks)
        for (Op& op : block.ops)
            if (op.name == name) return op;
    throw std::runtime_error("no op " + name);
}

}  // namespace lockstep::step::test
