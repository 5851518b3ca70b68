#include "gpu/attention_fused.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gpu/attention_graph.hpp"
#include "gpu/element.cuh"
#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

/// Addresses inside qkv, or its gradient: the queries of the first group of heads, its key, its value.
struct Parts {
    std::byte *q, *k, *v;
    Parts(const step::Attention& op, const Operand& qkv) : q(static_cast<std::byte*>(qkv.data)) {
        const std::int64_t element = qkv.bytes() / qkv.elements();
        k = q + op.heads / op.kv_heads * op.head_dim * element;
        v = k + op.head_dim * element;
    }
};

/// What the graph takes: this rank's positions are all, in order.
bool is_in_order(const step::Attention& op, const Operand& context) {
    const auto& runs = context.runs.at(0);
    return runs.size() == 1 && runs[0].count == op.seq && context.global[0] == op.seq;
}

/// Releases with known faults (NVIDIA's release notes and frontend): wrong results of 9.10.0 and 9.10.1; before 9.6 the
/// sum of dq wasn't cleared; up to 9.15 the backward pass of sequences that 128 doesn't divide.
std::optional<std::string> fault_of_release(const step::Attention& op) {
    const std::size_t version = cudnnGetVersion();
    const bool is_backward = op.pass != step::Pass::forward;
    if (version < 90600 || version == 91000 || version == 91001 ||
        (is_backward && version < 91600 && op.seq % 128 != 0))
        return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    return std::nullopt;
}

/// Why a fused engine can't be asked for.
std::optional<std::string> obstacle(const step::Attention& op, const Operands& o) {
    const Operand& context = op.pass == step::Pass::forward ? o.out[0] : o.in[2];
    if (op.algorithm != plan::AttentionAlgorithm::flash) return "probabilities are kept";
    if (op.part != step::Attention::Part::whole) return "a part of a ring";
    if (op.dropout > 0) return "dropout by element";
    if (context.dtype != DType::fp16 && context.dtype != DType::bf16) return std::string(to_string(context.dtype));
    if (op.head_dim % 8 != 0 || op.head_dim > 256) return fmt::format("heads of {} elements", op.head_dim);
    if (op.causal && !is_in_order(op, context)) return "a part of the sequence";
    const auto is_aligned = [](const Operand& operand) {
        return reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0;
    };
    if (!std::all_of(o.in.begin(), o.in.end(), is_aligned) || !std::all_of(o.out.begin(), o.out.end(), is_aligned))
        return "addresses that 16 bytes don't divide";
    return fault_of_release(op);
}

class FusedAttention final : public Kernel {
public:
    FusedAttention(std::shared_ptr<const DnnPlan> plan, std::vector<DnnCall::Address> addresses, Dnn& dnn)
        : call_(std::move(plan)), addresses_(std::move(addresses)), dnn_(dnn) {}
    /// A tensor of the graph that lives in the workspace.
    void add_to_workspace(const DnnGraph::Tensor& tensor) {
        const DnnGraph::Extents& e = tensor.extents;
        in_workspace_.emplace_back(tensor.id, own_);
        own_ += (e[0] * e[1] * e[2] * e[3] * 4 + 255) / 256 * 256;
    }
    std::int64_t workspace_bytes() const override { return own_ + call_.plan().workspace_bytes; }
    void bind_workspace(std::byte* workspace) override {
        for (const auto& [id, offset] : in_workspace_) addresses_.emplace_back(id, workspace + offset);
        call_.bind(addresses_, workspace + own_);
    }
    void enqueue(const Moment&, cudaStream_t stream) override { call_.execute(dnn_.on(stream)); }
    std::string algorithm() const override { return "fused: " + call_.plan().text; }

private:
    DnnCall call_;
    std::vector<DnnCall::Address> addresses_;
    std::vector<std::pair<std::int64_t, std::int64_t>> in_workspace_;  // id, offset
    std::int64_t own_ = 0;                                             // bytes in front of cuDNN's workspace
    Dnn& dnn_;
};

/// The plan of a graph; equal layers share it.
template <class Graph>
DnnChoice choose(const step::Attention& op, DType dtype, Graph& graph, Dnn& dnn) {
    const std::string what = fmt::format("attention {} {} {} {} {} {} {} {}", static_cast<int>(op.pass), op.batch,
                                         op.seq, op.heads, op.kv_heads, op.head_dim, op.causal, to_string(dtype));
    return dnn.plans().get(what, [&] { return choose_plan(std::move(graph.graph), dnn.handle()); });
}

std::unique_ptr<Kernel> make_forward(const step::Attention& op, const Operands& o, const KernelSetup& setup,
                                     std::string& why_not) {
    AttentionForwardGraph g = make_forward_graph(op, o.in[0].dtype);
    const DnnChoice choice = choose(op, o.in[0].dtype, g, setup.dnn);
    why_not = choice.why_not;
    if (choice.plan == nullptr) return nullptr;
    const Parts parts(op, o.in[0]);
    return std::make_unique<FusedAttention>(choice.plan,
                                            std::vector<DnnCall::Address>{{g.q.id, parts.q},
                                                                          {g.k.id, parts.k},
                                                                          {g.v.id, parts.v},
                                                                          {g.context.id, o.out[0].data},
                                                                          {g.log_sum_exp.id, floats(o.out[1])}},
                                            setup.dnn);
}

std::unique_ptr<Kernel> make_backward(const step::Attention& op, const Operands& o, const KernelSetup& setup,
                                      std::string& why_not) {
    AttentionBackwardGraph g = make_backward_graph(op, o.in[0].dtype);
    const DnnChoice choice = choose(op, o.in[0].dtype, g, setup.dnn);
    why_not = choice.why_not;
    if (choice.plan == nullptr) return nullptr;
    const Parts parts(op, o.in[1]), gradients(op, o.out[0]);
    auto kernel = std::make_unique<FusedAttention>(choice.plan,
                                                   std::vector<DnnCall::Address>{{g.dcontext.id, o.in[0].data},
                                                                                 {g.q.id, parts.q},
                                                                                 {g.k.id, parts.k},
                                                                                 {g.v.id, parts.v},
                                                                                 {g.context.id, o.in[2].data},
                                                                                 {g.log_sum_exp.id, floats(o.in[3])},
                                                                                 {g.dq.id, gradients.q},
                                                                                 {g.dk.id, gradients.k},
                                                                                 {g.dv.id, gradients.v}},
                                                   setup.dnn);
    kernel->add_to_workspace(g.delta);
    kernel->add_to_workspace(g.dq_sum);
    return kernel;
}

}  // namespace

std::unique_ptr<Kernel> make_fused_attention(const step::Attention& op, const Operands& o, const KernelSetup& setup,
                                             std::string& why_not) {
    if (const auto reason = obstacle(op, o)) {
        why_not = *reason;
        return nullptr;
    }
    std::unique_ptr<Kernel> kernel =
        op.pass == step::Pass::forward ? make_forward(op, o, setup, why_not) : make_backward(op, o, setup, why_not);
    if (kernel == nullptr) why_not = "cuDNN has no fused attention for it here: " + why_not;
    return kernel;
}

}  // namespace lockstep::gpu
