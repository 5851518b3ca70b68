// Attention, backward (Dao et al. 2022): probabilities are made again from scores and log-sum-exp, block by block.
//   D = P mask / (1 - p);  dV = D^T dO;  dP = (dO V^T) mask / (1 - p);  dS = P (dP - rowsum(dO O)) scale
//   dQ = dS K;  dK = dS^T Q
#include <array>
#include <cstring>

#include "cpu/attention.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/loop.hpp"
#include "cpu/softmax_row.hpp"
#include "cpu/tile_product.hpp"

namespace lockstep::cpu {
namespace {

using Transpose = step::Gemm::Transpose;

/// The five products of one block of queries.
struct BlockProducts {
    TileProduct scores, dprobabilities, dquery, dvalue, dkey;
    BlockProducts(const AttentionGeometry& g, std::int64_t block, DType dtype, OneDnn& library)
        : scores(against_keys(g, block, dtype, g.row()), library),
          dprobabilities(against_keys(g, block, dtype, g.context_row()), library),
          dquery(to_queries(g, block, dtype), library),
          dvalue(to_keys(g, block, dtype, g.context_row()), library),
          dkey(to_keys(g, block, dtype, g.row()), library) {}
    std::array<TileProduct*, 5> all() { return {&scores, &dprobabilities, &dquery, &dvalue, &dkey}; }

private:
    /// [queries, d] [keys, d]^T -> fp32 [queries, keys]
    static TileShape against_keys(const AttentionGeometry& g, std::int64_t block, DType dtype, std::int64_t row_a) {
        TileShape s{g.queries(block), g.keys(block), g.op.head_dim};
        s.transpose_b = Transpose::yes;
        s.row_a = row_a;
        s.row_b = g.row();
        s.row_c = g.op.seq;
        s.in = dtype;
        return s;
    }
    /// [queries, keys] [keys, d] -> dq
    static TileShape to_queries(const AttentionGeometry& g, std::int64_t block, DType dtype) {
        TileShape s{g.queries(block), g.op.head_dim, g.keys(block)};
        s.row_a = g.op.seq;
        s.row_b = s.row_c = g.row();
        s.in = s.out = dtype;
        return s;
    }
    /// [queries, keys]^T [queries, d], added to fp32 [seq, d]
    static TileShape to_keys(const AttentionGeometry& g, std::int64_t block, DType dtype, std::int64_t row_b) {
        TileShape s{g.keys(block), g.op.head_dim, g.queries(block)};
        s.transpose_a = Transpose::yes;
        s.row_a = g.op.seq;
        s.row_b = row_b;
        s.row_c = g.op.head_dim;
        s.in = dtype;
        s.result = TileShape::Result::adds;
        return s;
    }
};

template <class T>
class AttentionBackward final : public Kernel {
public:
    AttentionBackward(const step::Attention& op, const Operands& o, const KernelSetup& setup)
        : g_(op),
          setup_(setup),
          samples_(op, o.in[2]),
          dcontext_(pointer<T>(o.in[0])),
          qkv_(pointer<T>(o.in[1])),
          context_(pointer<T>(o.in[2])),
          saved_(o.in[3].data),
          dqkv_(pointer<T>(o.out[0])) {
        for (std::int64_t i = 0; i < g_.blocks(); ++i) blocks_.emplace_back(g_, i, o.in[0].dtype, setup.library);
        const std::int64_t tile = AttentionGeometry::block_rows * op.seq;
        p_ = plan_.add(tile * 4);
        dp_ = plan_.add(tile * 4);
        dropped_ = plan_.add(tile * static_cast<std::int64_t>(sizeof(T)));
        ds_ = plan_.add(tile * static_cast<std::int64_t>(sizeof(T)));
        dkey_ = plan_.add(op.seq * op.head_dim * 4);
        dvalue_ = plan_.add(op.seq * op.head_dim * 4);
        std::int64_t temporaries = 0;
        for (BlockProducts& b : blocks_)
            for (TileProduct* p : b.all()) temporaries = std::max(temporaries, p->scratch_bytes());
        temporaries_ = plan_.add(temporaries);
    }
    std::int64_t scratch_bytes() const override { return plan_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        scratch_ = scratch;
        for (BlockProducts& b : blocks_)
            for (TileProduct* p : b.all()) p->bind_scratch(scratch + temporaries_);
    }
    void run(const Moment& moment) override {
        const std::int64_t sharing = g_.op.heads / g_.op.kv_heads;
        const auto bytes = static_cast<std::size_t>(g_.op.seq * g_.op.head_dim) * sizeof(float);
        for (std::int64_t b = 0; b < g_.op.batch; ++b)
            for (std::int64_t kv = 0; kv < g_.op.kv_heads; ++kv) {
                std::memset(tile<float>(dkey_), 0, bytes);
                std::memset(tile<float>(dvalue_), 0, bytes);
                for (std::int64_t head = kv * sharing; head < (kv + 1) * sharing; ++head)
                    for (std::int64_t i = 0; i < g_.blocks(); ++i) run_block(moment, b, head, i);
                store_rows(tile<float>(dkey_), dqkv_ + g_.k_at(b, kv));
                store_rows(tile<float>(dvalue_), dqkv_ + g_.v_at(b, kv));
            }
    }

private:
    template <class U>
    U* tile(std::int64_t offset) const {
        return reinterpret_cast<U*>(scratch_ + offset);
    }
    void run_block(const Moment& moment, std::int64_t b, std::int64_t head, std::int64_t i) {
        BlockProducts& products = blocks_[static_cast<std::size_t>(i)];
        const dnnl::stream& stream = setup_.library.stream;
        const std::int64_t first = g_.first(i), kv = g_.kv_head(head);
        const T* q = qkv_ + g_.q_at(b, head, first);
        const T* k = qkv_ + g_.k_at(b, kv);
        const T* dout = dcontext_ + g_.context_at(b, head, first);
        if (needs_scores()) products.scores.run(q, k, tile<float>(p_), stream);
        products.dprobabilities.run(dout, qkv_ + g_.v_at(b, kv), tile<float>(dp_), stream);
        score_gradients(moment, b, head, i);
        products.dvalue.run(tile<T>(dropped_), dout, tile<float>(dvalue_), stream);
        products.dquery.run(tile<T>(ds_), k, dqkv_ + g_.q_at(b, head, first), stream);
        products.dkey.run(tile<T>(ds_), q, tile<float>(dkey_), stream);
    }
    bool is_flash() const { return g_.op.algorithm == plan::AttentionAlgorithm::flash; }
    /// Saved probabilities are those after dropout, which are of no use where an element was dropped.
    bool needs_scores() const { return is_flash() || g_.op.dropout > 0; }

    void score_gradients(const Moment& moment, std::int64_t b, std::int64_t head, std::int64_t i) const {
        const AttentionGeometry g = g_;
        const std::int64_t seq = g.op.seq, first = g.first(i), keys = g.keys(i), d = g.op.head_dim;
        const std::int64_t saved_row = (b * g.op.heads + head) * seq + first;
        const float* lse = is_flash() ? static_cast<const float*>(saved_) + saved_row : nullptr;
        const T* saved = needs_scores() ? nullptr : static_cast<const T*>(saved_) + saved_row * seq;
        const T* out = context_ + g.context_at(b, head, first);
        const T* dout = dcontext_ + g.context_at(b, head, first);
        float* p = tile<float>(p_);
        float* dp = tile<float>(dp_);
        T* dropped = tile<T>(dropped_);
        T* ds = tile<T>(ds_);
        const AttentionDropout draws = samples_.draws(g.op, setup_.seed, moment, b, head, first);
        parallel_rows(g.queries(i), seq, [=](std::int64_t r) {
            float* row = p + r * seq;
            float* drow = dp + r * seq;
            const std::int64_t visible = g.visible(first + r);
            if (saved != nullptr)
                for (std::int64_t k = 0; k < visible; ++k) row[k] = load(saved[r * seq + k]);
            else if (lse != nullptr)
                softmax_row(row, visible, g.scale, lse[r]);
            else
                softmax_row(row, visible, g.scale);
            float delta = 0;
#pragma omp simd reduction(+ : delta)
            for (std::int64_t c = 0; c < d; ++c)
                delta += load(out[r * g.context_row() + c]) * load(dout[r * g.context_row() + c]);
            T* dropped_row = dropped + r * seq;
            T* ds_row = ds + r * seq;
            if (draws.probability > 0) {
                AttentionDropout mine = draws;
                mine.first += static_cast<std::uint64_t>(r * seq);
                for (std::int64_t k = 0; k < visible; ++k) {
                    const float factor = mine.factor(k);
                    dropped_row[k] = store<T>(row[k] * factor);
                    drow[k] *= factor;
                }
            } else {
                for (std::int64_t k = 0; k < visible; ++k) dropped_row[k] = store<T>(row[k]);
            }
            for (std::int64_t k = 0; k < visible; ++k) ds_row[k] = store<T>(row[k] * (drow[k] - delta) * g.scale);
            for (std::int64_t k = visible; k < keys; ++k) dropped_row[k] = ds_row[k] = T{};
        });
    }
    void store_rows(const float* from, T* to) const {
        const std::int64_t d = g_.op.head_dim, row = g_.row();
        parallel_rows(g_.op.seq, d, [=](std::int64_t s) {
            for (std::int64_t c = 0; c < d; ++c) to[s * row + c] = store<T>(from[s * d + c]);
        });
    }

    AttentionGeometry g_;
    KernelSetup setup_;
    AttentionSamples samples_;
    const T* dcontext_;
    const T* qkv_;
    const T* context_;
    const void* saved_;
    T* dqkv_;
    std::vector<BlockProducts> blocks_;
    ScratchPlan plan_;
    std::int64_t p_ = 0, dp_ = 0, dropped_ = 0, ds_ = 0, dkey_ = 0, dvalue_ = 0, temporaries_ = 0;
    std::byte* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_backward(const step::Attention& op, const Operands& o,
                                                const KernelSetup& setup) {
    expect_slots(o, 4, 1, "attention backward");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        return std::make_unique<AttentionBackward<decltype(type)>>(op, o, setup);
    });
}

}  // namespace lockstep::cpu
