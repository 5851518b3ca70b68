// Attention, forward: softmax(scale q k^T) v for a block of queries at a time, so that scores stay in cache. A later
// step of a ring joins its result c', lse' with that of the steps before (Liu et al. 2023):
//   lse <- log(exp(lse) + exp(lse'));  c <- c exp(lse_before - lse) + c' exp(lse' - lse)
#include <cmath>
#include <limits>

#include "cpu/attention.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/loop.hpp"
#include "cpu/softmax_row.hpp"
#include "cpu/tile_product.hpp"

namespace lockstep::cpu {
namespace {

constexpr float no_keys = -std::numeric_limits<float>::infinity();  // log-sum-exp of none

template <class T>
class AttentionForward final : public Kernel {
public:
    AttentionForward(const step::Attention& op, const Operands& o, const KernelSetup& setup)
        : g_(op, o.out[0], o.in[op.part == step::Attention::Part::ring ? 1 : 0]),
          setup_(setup),
          qkv_(pointer<T>(o.in[0])),
          keys_(pointer<T>(o.in[g_.is_ring() ? 1 : 0])),
          context_(pointer<T>(o.out[0])) {
        if (is_flash()) {
            lse_ = floats(o.out[1]);
        } else {
            probabilities_ = pointer<T>(o.out[1]);
            if (op.dropout > 0) mask_ = pointer<std::uint8_t>(o.out[2]);
            dropped_ = op.dropout > 0 ? pointer<T>(o.out[3]) : probabilities_;
        }
        make_products(o.in[0].dtype, setup.library);
        const std::int64_t tile = AttentionGeometry::block_rows * g_.key_count;
        score_tile_ = plan_.add(tile * 4);
        if (is_flash()) probability_tile_ = plan_.add(tile * static_cast<std::int64_t>(sizeof(T)));
        if (!g_.is_first_step()) {
            context_tile_ = plan_.add(AttentionGeometry::block_rows * op.head_dim * 4);
            lse_tile_ = plan_.add(AttentionGeometry::block_rows * 4);
        }
        std::int64_t temporaries = 0;
        for (auto* products : {&scores_, &mixes_})
            for (const TileProduct& p : *products) temporaries = std::max(temporaries, p.scratch_bytes());
        temporaries_ = plan_.add(temporaries);
    }
    void run(const Moment& moment) override {
        for (std::int64_t b = 0; b < g_.op.batch; ++b)
            for (std::int64_t head = 0; head < g_.op.heads; ++head)
                for (std::size_t i = 0; i < g_.blocks.size(); ++i) run_block(moment, b, head, i);
    }
    std::int64_t scratch_bytes() const override { return plan_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        scratch_ = scratch;
        for (auto* products : {&scores_, &mixes_})
            for (TileProduct& p : *products) p.bind_scratch(scratch + temporaries_);
    }

private:
    bool is_flash() const { return g_.op.algorithm == plan::AttentionAlgorithm::flash; }
    template <class U>
    U* tile(std::int64_t offset) const {
        return reinterpret_cast<U*>(scratch_ + offset);
    }
    void make_products(DType dtype, OneDnn& library) {
        for (const QueryBlock& block : g_.blocks) {
            TileShape score{block.queries, block.keys, g_.op.head_dim};
            score.transpose_b = step::Gemm::Transpose::yes;
            score.row_a = g_.row();
            score.row_b = g_.key_row();
            score.row_c = g_.key_count;
            score.in = dtype;
            scores_.emplace_back(score, library);
            TileShape mix{block.queries, g_.op.head_dim, block.keys};
            mix.row_a = g_.key_count;
            mix.row_b = g_.key_row();
            mix.row_c = g_.is_first_step() ? g_.context_row() : g_.op.head_dim;
            mix.in = dtype;
            mix.out = g_.is_first_step() ? dtype : DType::fp32;
            mixes_.emplace_back(mix, library);
        }
    }

    void run_block(const Moment& moment, std::int64_t b, std::int64_t head, std::size_t i) {
        const QueryBlock& block = g_.blocks[i];
        const std::int64_t group = head / g_.sharing();
        scores_[i].run(qkv_ + g_.q_at(b, head, block.first), keys_ + g_.k_at(b, group), tile<float>(score_tile_),
                       setup_.library.stream);
        const T* weights = is_flash() ? flash_weights(moment, b, head, block) : saved_weights(moment, b, head, block);
        void* result = tile<float>(context_tile_);
        if (g_.is_first_step()) result = context_ + g_.context_at(b, head, block.first);
        mixes_[i].run(weights, keys_ + g_.v_at(b, group), result, setup_.library.stream);
        if (!g_.is_first_step()) merge(b, head, block);
    }

    /// Probabilities after dropout of a block, in a tile; the log-sum-exp of its rows is kept.
    const T* flash_weights(const Moment& moment, std::int64_t b, std::int64_t head, const QueryBlock& block) const {
        float* scores = tile<float>(score_tile_);
        T* weights = tile<T>(probability_tile_);
        float* lse = g_.is_first_step() ? lse_ + g_.saved_row(b, head, block.first) : tile<float>(lse_tile_);
        const AttentionDropout dropout(g_.op, setup_.seed, moment.step);
        parallel_rows(block.queries, g_.key_count, [=, this](std::int64_t r) {
            const std::int64_t q = block.first + r, visible = g_.visible(q);
            float* row = scores + r * g_.key_count;
            T* to = weights + r * g_.key_count;
            lse[r] = visible > 0 ? softmax_row(row, visible, g_.scale) : no_keys;
            if (dropout.probability > 0) {
                const std::uint64_t first = g_.first_draw(moment.micro_batch, b, head, q);
                g_.for_visible(q, [=](std::int64_t k, std::int64_t at) { row[k] *= dropout.factor(first + at); });
            }
            for (std::int64_t k = 0; k < visible; ++k) to[k] = store<T>(row[k]);
            for (std::int64_t k = visible; k < block.keys; ++k) to[k] = T{};
        });
        return weights;
    }

    /// The same where probabilities, mask and probabilities after dropout are kept: zero where masked, as later ops
    /// read whole rows.
    const T* saved_weights(const Moment& moment, std::int64_t b, std::int64_t head, const QueryBlock& block) const {
        float* scores = tile<float>(score_tile_);
        const std::int64_t keys = g_.key_count, saved = g_.saved_row(b, head, block.first) * keys;
        const AttentionDropout dropout(g_.op, setup_.seed, moment.step);
        parallel_rows(block.queries, keys, [=, this](std::int64_t r) {
            const std::int64_t q = block.first + r, visible = g_.visible(q), at_row = saved + r * keys;
            float* row = scores + r * keys;
            softmax_row(row, visible, g_.scale);
            T* kept = probabilities_ + at_row;
            for (std::int64_t k = 0; k < visible; ++k) kept[k] = store<T>(row[k]);
            for (std::int64_t k = visible; k < keys; ++k) kept[k] = T{};
            if (mask_ == nullptr) return;
            const std::uint64_t first = g_.first_draw(moment.micro_batch, b, head, q);
            std::uint8_t* mask = mask_ + at_row;
            T* to = dropped_ + at_row;
            g_.for_visible(q, [=](std::int64_t k, std::int64_t at) { mask[k] = dropout.keeps(first + at) ? 1 : 0; });
            for (std::int64_t k = 0; k < visible; ++k) to[k] = store<T>(mask[k] != 0 ? row[k] * dropout.kept() : 0.0F);
            for (std::int64_t k = visible; k < keys; ++k) {
                mask[k] = 0;
                to[k] = T{};
            }
        });
        return dropped_ + saved;
    }

    void merge(std::int64_t b, std::int64_t head, const QueryBlock& block) const {
        float* lse = lse_ + g_.saved_row(b, head, block.first);
        const float* part = tile<float>(lse_tile_);
        const float* from = tile<float>(context_tile_);
        T* to = context_ + g_.context_at(b, head, block.first);
        parallel_rows(block.queries, g_.op.head_dim, [=, this](std::int64_t r) {
            if (part[r] == no_keys) return;
            const float largest = std::max(lse[r], part[r]);
            const float joined = largest + std::log(std::exp(lse[r] - largest) + std::exp(part[r] - largest));
            const float before = std::exp(lse[r] - joined), now = std::exp(part[r] - joined);
            lse[r] = joined;
            const std::int64_t d = g_.op.head_dim;
            T* row = to + r * g_.context_row();
            for (std::int64_t c = 0; c < d; ++c) row[c] = store<T>(load(row[c]) * before + from[r * d + c] * now);
        });
    }

    AttentionGeometry g_;
    KernelSetup setup_;
    const T* qkv_;
    const T* keys_;
    T* context_;
    float* lse_ = nullptr;
    T* probabilities_ = nullptr;
    std::uint8_t* mask_ = nullptr;
    T* dropped_ = nullptr;
    std::vector<TileProduct> scores_, mixes_;  // by block of queries
    ScratchPlan plan_;
    std::int64_t score_tile_ = 0, probability_tile_ = 0, context_tile_ = 0, lse_tile_ = 0, temporaries_ = 0;
    std::byte* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_forward(const step::Attention& op, const Operands& o, const KernelSetup& setup) {
    const bool is_ring = op.part == step::Attention::Part::ring;
    const bool keeps_mask = op.algorithm == plan::AttentionAlgorithm::unfused && op.dropout > 0;
    expect_slots(o, is_ring ? 2 : 1, keeps_mask ? 4 : 2, "attention");
    if (is_ring)
        for (const Output& output : o.out) expect_ring_access(op, output);
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        return std::make_unique<AttentionForward<decltype(type)>>(op, o, setup);
    });
}

}  // namespace lockstep::cpu
