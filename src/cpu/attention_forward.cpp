// Attention, forward: softmax(scale q k^T) v for a block of queries at a time, so that scores stay in cache.
#include <fmt/format.h>

#include "cpu/attention.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/loop.hpp"
#include "cpu/softmax_row.hpp"
#include "cpu/tile_product.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
class AttentionForward final : public Kernel {
public:
    AttentionForward(const step::Attention& op, const Operands& o, const KernelSetup& setup)
        : geometry_(op),
          setup_(setup),
          samples_(op, o.out[0]),
          qkv_(pointer<T>(o.in[0])),
          context_(pointer<T>(o.out[0])),
          saved_(o.out[1].data) {
        using Transpose = step::Gemm::Transpose;
        const DType dtype = o.in[0].dtype;
        for (std::int64_t i = 0; i < geometry_.blocks(); ++i) {
            const std::int64_t rows = geometry_.queries(i), keys = geometry_.keys(i);
            TileShape score{rows, keys, op.head_dim};
            score.transpose_b = Transpose::yes;
            score.row_a = score.row_b = geometry_.row();
            score.row_c = op.seq;
            score.in = dtype;
            scores_.emplace_back(score, setup.library);
            TileShape mix{rows, op.head_dim, keys};
            mix.row_a = op.seq;
            mix.row_b = geometry_.row();
            mix.row_c = geometry_.context_row();
            mix.in = mix.out = dtype;
            mixes_.emplace_back(mix, setup.library);
        }
        score_tile_ = plan_.add(AttentionGeometry::block_rows * op.seq * 4);
        probability_tile_ = plan_.add(AttentionGeometry::block_rows * op.seq * static_cast<std::int64_t>(sizeof(T)));
        std::int64_t temporaries = 0;
        for (auto* products : {&scores_, &mixes_})
            for (const TileProduct& p : *products) temporaries = std::max(temporaries, p.scratch_bytes());
        temporaries_ = plan_.add(temporaries);
    }
    void run(const Moment& moment) override {
        for (std::int64_t b = 0; b < geometry_.op.batch; ++b)
            for (std::int64_t head = 0; head < geometry_.op.heads; ++head)
                for (std::int64_t i = 0; i < geometry_.blocks(); ++i) run_block(moment, b, head, i);
    }
    std::int64_t scratch_bytes() const override { return plan_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        scratch_ = scratch;
        for (auto* products : {&scores_, &mixes_})
            for (TileProduct& p : *products) p.bind_scratch(scratch + temporaries_);
    }

private:
    void run_block(const Moment& moment, std::int64_t b, std::int64_t head, std::int64_t i) {
        const AttentionGeometry& g = geometry_;
        const auto block = static_cast<std::size_t>(i);
        const std::int64_t first = g.first(i), kv = g.kv_head(head), seq = g.op.seq;
        auto* scores = reinterpret_cast<float*>(scratch_ + score_tile_);
        const bool is_flash = g.op.algorithm == plan::AttentionAlgorithm::flash;
        const std::int64_t saved_row = (b * g.op.heads + head) * seq + first;
        auto* probabilities =
            is_flash ? reinterpret_cast<T*>(scratch_ + probability_tile_) : static_cast<T*>(saved_) + saved_row * seq;
        float* lse = is_flash ? static_cast<float*>(saved_) + saved_row : nullptr;
        scores_[block].run(qkv_ + g.q_at(b, head, first), qkv_ + g.k_at(b, kv), scores, setup_.library.stream);
        const AttentionDropout draws = samples_.draws(g.op, setup_.seed, moment, b, head, first);
        // The saved probabilities of an unfused pass are read whole by later ops, hence zero where masked.
        const std::int64_t width = is_flash ? g.keys(i) : seq;
        parallel_rows(g.queries(i), seq, [=](std::int64_t r) {
            float* row = scores + r * seq;
            T* to = probabilities + r * seq;
            const std::int64_t visible = g.visible(first + r);
            const float sum = softmax_row(row, visible, g.scale);
            if (lse != nullptr) lse[r] = sum;
            if (draws.probability > 0) {
                AttentionDropout mine = draws;
                mine.first += static_cast<std::uint64_t>(r * seq);
                for (std::int64_t k = 0; k < visible; ++k) row[k] *= mine.factor(k);
            }
            for (std::int64_t k = 0; k < visible; ++k) to[k] = store<T>(row[k]);
            for (std::int64_t k = visible; k < width; ++k) to[k] = T{};
        });
        mixes_[block].run(probabilities, qkv_ + g.v_at(b, kv), context_ + g.context_at(b, head, first),
                          setup_.library.stream);
    }

    AttentionGeometry geometry_;
    KernelSetup setup_;
    AttentionSamples samples_;
    const T* qkv_;
    T* context_;
    void* saved_;
    std::vector<TileProduct> scores_, mixes_;  // by block of queries
    ScratchPlan plan_;
    std::int64_t score_tile_ = 0, probability_tile_ = 0, temporaries_ = 0;
    std::byte* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_forward(const step::Attention& op, const Operands& o, const KernelSetup& setup) {
    expect_slots(o, 1, 2, "attention");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        return std::make_unique<AttentionForward<decltype(type)>>(op, o, setup);
    });
}

std::unique_ptr<Kernel> make_attention(const step::Attention& op, const Operands& o, const KernelSetup& setup) {
    if (op.kv_heads < 1 || op.heads % op.kv_heads != 0)
        throw LogicError(fmt::format("{} heads can't share {} key-value heads", op.heads, op.kv_heads));
    return with_onednn_errors(fmt::format("{} attention", to_string(o.in[0].dtype)), [&] {
        return op.pass == step::Pass::forward ? make_attention_forward(op, o, setup)
                                              : make_attention_backward(op, o, setup);
    });
}

}  // namespace lockstep::cpu
