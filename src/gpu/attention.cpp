// Attention: by cuDNN's fused engines where they can, else composed. The choice is recorded with its reason.
#include <fmt/format.h>

#include "base/error.hpp"
#include "gpu/attention_composed.hpp"
#include "gpu/attention_fused.hpp"
#include "gpu/kernels.hpp"

namespace lockstep::gpu {
namespace {

/// A composed kernel and why it is not a fused one.
class Explained final : public Kernel {
public:
    Explained(std::unique_ptr<Kernel> kernel, std::string reason)
        : kernel_(std::move(kernel)), reason_(std::move(reason)) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override { kernel_->enqueue(moment, stream); }
    std::int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    void bind_workspace(std::byte* workspace) override { kernel_->bind_workspace(workspace); }
    std::string algorithm() const override { return fmt::format("{} ({})", kernel_->algorithm(), reason_); }

private:
    std::unique_ptr<Kernel> kernel_;
    std::string reason_;
};

void check(const step::Attention& op, const Operands& o) {
    const bool is_ring = op.part == step::Attention::Part::ring, is_forward = op.pass == step::Pass::forward;
    const bool keeps_mask = op.algorithm == plan::AttentionAlgorithm::unfused && op.dropout > 0;
    if (is_forward)
        expect_slots(o, is_ring ? 2 : 1, keeps_mask ? 4 : 2, "attention");
    else
        expect_slots(o, is_ring ? 5 : (keeps_mask ? 6 : 4), is_ring ? 2 : 1, "attention backward");
    if (op.kv_heads < 1 || op.heads % op.kv_heads != 0)
        throw LogicError(fmt::format("{} heads can't share {} key-value heads", op.heads, op.kv_heads));
    if (!is_ring) return;
    if (op.algorithm != plan::AttentionAlgorithm::flash)
        throw LogicError("attention around a ring keeps no probabilities (its algorithm must be flash)");
    for (const Output& output : o.out)
        if ((op.ring_step == 0) != (output.access == step::Access::overwrite))
            throw LogicError(fmt::format("ring step {} of attention must {} what it writes", op.ring_step,
                                         op.ring_step == 0 ? "overwrite" : "update"));
}

}  // namespace

std::unique_ptr<Kernel> make_attention(const step::Attention& op, MathType math, const Operands& o,
                                       const KernelSetup& setup) {
    check(op, o);
    std::string why_not;
    if (auto fused = make_fused_attention(op, o, setup, why_not)) return fused;
    return std::make_unique<Explained>(make_composed_attention(op, math, o, setup), std::move(why_not));
}

}  // namespace lockstep::gpu
