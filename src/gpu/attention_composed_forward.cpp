// Attention, forward: softmax(scale q k^T) v for a tile of scores at a time. A later step of a ring joins its result
// c', lse' with that of the steps before (Liu et al. 2023):
//   lse <- log(exp(lse) + exp(lse'));  c <- c exp(lse_before - lse) + c' exp(lse' - lse)
#include <algorithm>

#include "gpu/attention_composed.hpp"
#include "gpu/element.cuh"

namespace lockstep::gpu {
namespace {

/// The two products of a tile.
struct ForwardProducts {
    HeadProduct scores, context;
};

class ComposedForward final : public Kernel {
public:
    ComposedForward(const ComposedAttention& a, const Operands& o)
        : a_(a),
          q_(a.queries_in(o.in[0])),
          k_(a.keys_in(o.in[a.is_ring() ? 1 : 0])),
          v_(a.values_in(o.in[a.is_ring() ? 1 : 0])),
          context_(a.in_context(o.out[0])),
          chunks_(a.plan(a.is_flash() ? 4 + a.element() : 4)) {
        if (a.is_flash()) {
            log_sum_exp_ = floats(o.out[1]);
        } else {
            kept_.probabilities = kept_.dropped = o.out[1].data;
            if (a.op.dropout > 0) {
                kept_.mask = pointer<std::uint8_t>(o.out[2]);
                kept_.dropped = o.out[3].data;
            }
        }
        for (const AttentionChunk& chunk : chunks_)
            for (const AttentionTile& tile : chunk.tiles) add_products(tile);
        plan_workspace();
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        std::size_t next = 0;
        for (const AttentionChunk& chunk : chunks_)
            for (const AttentionTile& tile : chunk.tiles)
                enqueue_tile(tile, products_[next++], a_.draws(moment), stream);
    }
    std::int64_t workspace_bytes() const override { return plan_.bytes(); }
    void bind_workspace(std::byte* workspace) override { workspace_ = workspace; }
    std::string algorithm() const override { return "composed"; }

private:
    /// What weighs the values: probabilities after dropout.
    HeadMatrices weights(const AttentionTile& tile) const {
        return a_.is_flash() ? a_.tile(tile, a_.dtype) : a_.kept(kept_.dropped);
    }
    /// Where a tile's context goes: a later step of a ring has its own.
    HeadMatrices result(const AttentionTile& tile) const {
        if (a_.is_first_step()) return context_;
        const std::int64_t d = a_.op.head_dim;
        return {nullptr, DType::fp32, d, tile.queries * d, a_.place.heads * tile.queries * d};
    }
    void add_products(const AttentionTile& t) {
        const HeadMatrices scores = a_.tile(t, DType::fp32);
        const std::int64_t d = a_.op.head_dim, heads = a_.place.heads;
        products_.push_back(
            {HeadProduct({t.queries, t.keys, d, false, true, q_, k_, scores, a_.math}, t.groups, heads, a_.blas),
             HeadProduct({t.queries, d, t.keys, false, false, weights(t), v_, result(t), a_.math}, t.groups, heads,
                         a_.blas)});
    }
    void plan_workspace() {
        std::int64_t scores = 0, context = 0, library = 0;
        for (const AttentionChunk& chunk : chunks_)
            for (const AttentionTile& t : chunk.tiles) {
                const std::int64_t rows = t.groups * a_.place.heads * t.queries;
                scores = std::max(scores, rows * t.row);
                context = std::max(context, rows * a_.op.head_dim);
            }
        for (const ForwardProducts& p : products_)
            library = std::max({library, p.scores.workspace_bytes(), p.context.workspace_bytes()});
        scores_ = weights_ = plan_.add(scores * 4);
        if (a_.is_flash() && a_.dtype != DType::fp32) weights_ = plan_.add(scores * a_.element());
        if (!a_.is_first_step()) {
            part_ = plan_.add(context * 4);
            part_log_sum_exp_ = plan_.add(a_.place.groups * a_.place.heads * a_.place.seq * 4);
        }
        library_ = plan_.add(library);
    }
    template <class T>
    T* at(std::int64_t offset) const {
        return reinterpret_cast<T*>(workspace_ + offset);
    }

    void enqueue_tile(const AttentionTile& t, const ForwardProducts& products, const AttentionDraws& draws,
                      cudaStream_t stream) const {
        const bool is_first = a_.is_first_step();
        auto* scores = at<float>(scores_);
        products.scores.enqueue(q_.at(t), k_.at(t.first_group, 0), at<std::byte>(scores_), false,
                                at<std::byte>(library_), stream);
        const std::byte* weights = at<std::byte>(weights_);
        if (a_.is_flash()) {
            softmax_rows(a_.place, t, draws, a_.dtype, scores, at<std::byte>(weights_),
                         is_first ? log_sum_exp_ : at<float>(part_log_sum_exp_), stream);
        } else {
            softmax_kept_rows(a_.place, t, draws, a_.dtype, scores, kept_, stream);
            weights = a_.kept(kept_.dropped).at(t);
        }
        products.context.enqueue(weights, v_.at(t.first_group, 0), is_first ? context_.at(t) : at<std::byte>(part_),
                                 false, at<std::byte>(library_), stream);
        if (!is_first)
            merge_rows(a_.place, t, a_.dtype, at<float>(part_), at<float>(part_log_sum_exp_), context_.data,
                       log_sum_exp_, stream);
    }

    ComposedAttention a_;
    HeadMatrices q_, k_, v_, context_;
    float* log_sum_exp_ = nullptr;
    KeptProbabilities kept_;
    std::vector<AttentionChunk> chunks_;
    std::vector<ForwardProducts> products_;  // by tile
    WorkspacePlan plan_;
    std::int64_t scores_ = 0, weights_ = 0, part_ = 0, part_log_sum_exp_ = 0, library_ = 0;
    std::byte* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_composed_forward(const ComposedAttention& shared, const Operands& operands) {
    return std::make_unique<ComposedForward>(shared, operands);
}

}  // namespace lockstep::gpu
