// Attention, backward (Dao et al. 2022), a tile of scores at a time. Flash makes the probabilities again from scores
// and log-sum-exp, unfused has kept them.
//   D = P mask / (1 - p);  dV = D^T dO;  dP = (dO V^T) mask / (1 - p);  dS = P (dP - rowsum(dO O)) scale
//   dQ = dS K;  dK = dS^T Q
// With the log-sum-exp of all keys this holds for any part of them, so that a ring adds up its steps.
#include <algorithm>

#include "gpu/attention_composed.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"

namespace lockstep::gpu {
namespace {

/// The five products of a tile; `scores` only where they are made again.
struct BackwardProducts {
    std::vector<HeadProduct> scores;
    HeadProduct dprobabilities, dvalue, dquery, dkey;
};

class ComposedBackward final : public Kernel {
public:
    ComposedBackward(const ComposedAttention& a, const Operands& o)
        : a_(a),
          ring_(a.is_ring() ? 1 : 0),
          dcontext_(a.in_context(o.in[0])),
          q_(a.queries_in(o.in[1])),
          k_(a.keys_in(o.in[1 + ring_])),
          v_(a.values_in(o.in[1 + ring_])),
          context_(a.in_context(o.in[2 + ring_])),
          dq_(a.queries_in(o.out[0])),
          dkeys_(a.keys_in(o.out[ring_])),
          chunks_(a.plan(score_bytes())) {
        if (a.is_flash()) {
            log_sum_exp_ = floats(o.in[3 + ring_]);
        } else {
            kept_.probabilities = kept_.dropped = o.in[3].data;
            if (a.op.dropout > 0) {
                kept_.mask = pointer<std::uint8_t>(o.in[4]);
                kept_.dropped = o.in[5].data;
            }
        }
        for (const AttentionChunk& chunk : chunks_)
            for (const AttentionTile& tile : chunk.tiles) add_products(tile);
        plan_workspace();
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        std::size_t next = 0;
        for (const AttentionChunk& chunk : chunks_) {
            const std::int64_t sums = chunk.groups * a_.place.keys * a_.op.head_dim * 4;
            for (const std::int64_t offset : {dkey_sums_, dvalue_sums_})
                check_cuda(cudaMemsetAsync(at<std::byte>(offset), 0, static_cast<std::size_t>(sums), stream),
                           "cudaMemsetAsync");
            for (const AttentionTile& tile : chunk.tiles)
                enqueue_tile(tile, products_[next++], a_.draws(moment), stream);
            store_keys(a_.place, chunk.groups, a_.dtype, at<float>(dkey_sums_), at<float>(dvalue_sums_),
                       {dkeys_.at(chunk.first_group, 0), dkeys_.row, dkeys_.group}, !a_.is_first_step(), stream);
        }
        if (ring_ > 0 && a_.is_first_step()) {
            const std::int64_t queries = a_.place.heads * dq_.head * dq_.element();
            clear_keys(a_.place, a_.dtype, {dq_.data + queries, dq_.row, dq_.group}, stream);
        }
    }
    std::int64_t workspace_bytes() const override { return plan_.bytes(); }
    void bind_workspace(std::byte* workspace) override { workspace_ = workspace; }
    std::string algorithm() const override { return "composed"; }

private:
    bool is_fp32() const { return a_.dtype == DType::fp32; }
    /// Of a tile: scores and dprobabilities fp32, dropped probabilities and dscores as the operands, in the place of
    /// the former where that fits.
    std::int64_t score_bytes() const {
        const std::int64_t own = is_fp32() ? 0 : a_.element();
        return a_.is_flash() ? 2 * (4 + own) : 4 + own;
    }
    HeadMatrices dropped(const AttentionTile& tile) const {
        return a_.is_flash() ? a_.tile(tile, a_.dtype) : a_.kept(kept_.dropped);
    }
    /// Sums over queries and heads: [groups of a chunk, keys, head_dim].
    HeadMatrices key_sums() const {
        const std::int64_t d = a_.op.head_dim;
        return {nullptr, DType::fp32, d, 0, a_.place.keys * d};
    }
    void add_products(const AttentionTile& t) {
        const HeadMatrices scores = a_.tile(t, DType::fp32), dscores = a_.tile(t, a_.dtype), sums = key_sums();
        const std::int64_t d = a_.op.head_dim;
        const auto product = [&](HeadProduct::Shape shape) {
            shape.math = a_.math;
            return HeadProduct(shape, t.groups, a_.place.heads, a_.blas);
        };
        BackwardProducts p{{},
                           product({t.queries, t.keys, d, false, true, dcontext_, v_, scores}),
                           product({t.keys, d, t.queries, true, false, dropped(t), dcontext_, sums}),
                           product({t.queries, d, t.keys, false, false, dscores, k_, dq_}),
                           product({t.keys, d, t.queries, true, false, dscores, q_, sums})};
        if (a_.is_flash()) p.scores.push_back(product({t.queries, t.keys, d, false, true, q_, k_, scores}));
        products_.push_back(std::move(p));
    }
    void plan_workspace() {
        std::int64_t scores = 0, groups = 0, library = 0;
        for (const AttentionChunk& chunk : chunks_) {
            groups = std::max(groups, chunk.groups);
            for (const AttentionTile& t : chunk.tiles)
                scores = std::max(scores, t.groups * a_.place.heads * t.queries * t.row);
        }
        for (const BackwardProducts& p : products_) {
            for (const HeadProduct* product : {&p.dprobabilities, &p.dvalue, &p.dquery, &p.dkey})
                library = std::max(library, product->workspace_bytes());
            for (const HeadProduct& product : p.scores) library = std::max(library, product.workspace_bytes());
        }
        if (a_.is_flash()) scores_ = dropped_ = plan_.add(scores * 4);
        dprobabilities_ = dscores_ = plan_.add(scores * 4);
        if (!is_fp32()) {
            if (a_.is_flash()) dropped_ = plan_.add(scores * a_.element());
            dscores_ = plan_.add(scores * a_.element());
        }
        dkey_sums_ = plan_.add(groups * a_.place.keys * a_.op.head_dim * 4);
        dvalue_sums_ = plan_.add(groups * a_.place.keys * a_.op.head_dim * 4);
        library_ = plan_.add(library);
    }
    template <class T>
    T* at(std::int64_t offset) const {
        return reinterpret_cast<T*>(workspace_ + offset);
    }

    void enqueue_tile(const AttentionTile& t, const BackwardProducts& products, const AttentionDraws& draws,
                      cudaStream_t stream) const {
        const std::byte *k = k_.at(t.first_group, 0), *v = v_.at(t.first_group, 0), *dropped = at<std::byte>(dropped_);
        const auto run = [&](const HeadProduct& product, const std::byte* a, const std::byte* b, std::byte* c,
                             bool adds) { product.enqueue(a, b, c, adds, at<std::byte>(library_), stream); };
        run(products.dprobabilities, dcontext_.at(t), v, at<std::byte>(dprobabilities_), false);
        if (a_.is_flash()) {
            run(products.scores.front(), q_.at(t), k, at<std::byte>(scores_), false);
            gradient_rows(a_.place, t, draws, a_.dtype, at<float>(scores_), at<float>(dprobabilities_), dcontext_.data,
                          context_.data, log_sum_exp_, at<std::byte>(dropped_), at<std::byte>(dscores_), stream);
        } else {
            gradient_kept_rows(a_.place, t, static_cast<float>(a_.op.dropout), a_.dtype, at<float>(dprobabilities_),
                               dcontext_.data, context_.data, kept_, at<std::byte>(dscores_), stream);
            dropped = a_.kept(kept_.dropped).at(t);
        }
        run(products.dvalue, dropped, dcontext_.at(t), at<std::byte>(dvalue_sums_), true);
        run(products.dquery, at<std::byte>(dscores_), k, dq_.at(t), !a_.is_first_step());
        run(products.dkey, at<std::byte>(dscores_), q_.at(t), at<std::byte>(dkey_sums_), true);
    }

    ComposedAttention a_;
    std::size_t ring_;  // 1 in a ring: slots are one later then
    HeadMatrices dcontext_, q_, k_, v_, context_, dq_, dkeys_;
    const float* log_sum_exp_ = nullptr;
    KeptProbabilities kept_;
    std::vector<AttentionChunk> chunks_;
    std::vector<BackwardProducts> products_;  // by tile
    WorkspacePlan plan_;
    std::int64_t scores_ = 0, dprobabilities_ = 0, dropped_ = 0, dscores_ = 0, dkey_sums_ = 0, dvalue_sums_ = 0,
                 library_ = 0;
    std::byte* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_composed_backward(const ComposedAttention& shared, const Operands& operands) {
    return std::make_unique<ComposedBackward>(shared, operands);
}

}  // namespace lockstep::gpu
