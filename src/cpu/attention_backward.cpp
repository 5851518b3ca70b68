// Attention, backward (Dao et al. 2022), block by block of queries. Flash makes the probabilities again from scores and
// log-sum-exp, unfused has kept them.
//   D = P mask / (1 - p);  dV = D^T dO;  dP = (dO V^T) mask / (1 - p);  dS = P (dP - rowsum(dO O)) scale
//   dQ = dS K;  dK = dS^T Q
// With the log-sum-exp of all keys this holds for any part of them, so that a ring adds up its steps.
#include <cstring>

#include "cpu/attention_products.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/loop.hpp"
#include "cpu/softmax_row.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
class AttentionBackward final : public Kernel {
public:
    AttentionBackward(const step::Attention& op, const Operands& o, const KernelSetup& setup)
        : ring_(op.part == step::Attention::Part::ring ? 1 : 0),
          g_(op, o.in[2 + ring_], o.in[1 + ring_]),
          setup_(setup),
          dcontext_(pointer<T>(o.in[0])),
          qkv_(pointer<T>(o.in[1])),
          keys_(pointer<T>(o.in[1 + ring_])),
          context_(pointer<T>(o.in[2 + ring_])),
          dqkv_(pointer<T>(o.out[0])),
          dkeys_(pointer<T>(o.out[ring_])) {
        if (is_flash()) {
            lse_ = floats(o.in[3 + ring_]);
        } else {
            probabilities_ = pointer<T>(o.in[3]);
            if (op.dropout > 0) mask_ = pointer<std::uint8_t>(o.in[4]);
            dropped_ = op.dropout > 0 ? pointer<T>(o.in[5]) : probabilities_;
        }
        for (const QueryBlock& block : g_.blocks) products_.emplace_back(g_, block, o.in[0].dtype, setup.library);
        const std::int64_t tile = AttentionGeometry::block_rows * g_.key_count;
        if (is_flash()) p_ = plan_.add(tile * 4);
        dp_ = plan_.add(tile * 4);
        if (is_flash()) dropped_tile_ = plan_.add(tile * static_cast<std::int64_t>(sizeof(T)));
        ds_ = plan_.add(tile * static_cast<std::int64_t>(sizeof(T)));
        dkey_ = plan_.add(g_.key_count * op.head_dim * 4);
        dvalue_ = plan_.add(g_.key_count * op.head_dim * 4);
        std::int64_t temporaries = 0;
        for (AttentionProducts& b : products_)
            for (TileProduct* p : b.all()) temporaries = std::max(temporaries, p->scratch_bytes());
        temporaries_ = plan_.add(temporaries);
    }
    std::int64_t scratch_bytes() const override { return plan_.bytes(); }
    void bind_scratch(std::byte* scratch) override {
        scratch_ = scratch;
        for (AttentionProducts& b : products_)
            for (TileProduct* p : b.all()) p->bind_scratch(scratch + temporaries_);
    }
    void run(const Moment& moment) override {
        const auto bytes = static_cast<std::size_t>(g_.key_count * g_.op.head_dim) * sizeof(float);
        for (std::int64_t b = 0; b < g_.op.batch; ++b)
            for (std::int64_t group = 0; group < g_.op.kv_heads; ++group) {
                std::memset(tile<float>(dkey_), 0, bytes);
                std::memset(tile<float>(dvalue_), 0, bytes);
                for (std::int64_t head = group * g_.sharing(); head < (group + 1) * g_.sharing(); ++head)
                    for (std::size_t i = 0; i < g_.blocks.size(); ++i) run_block(moment, b, head, i);
                store_rows(tile<float>(dkey_), dkeys_ + g_.k_at(b, group));
                store_rows(tile<float>(dvalue_), dkeys_ + g_.v_at(b, group));
                if (g_.is_ring() && g_.is_first_step()) clear_own_keys(b, group);
            }
    }

private:
    bool is_flash() const { return g_.op.algorithm == plan::AttentionAlgorithm::flash; }
    template <class U>
    U* tile(std::int64_t offset) const {
        return reinterpret_cast<U*>(scratch_ + offset);
    }
    void run_block(const Moment& moment, std::int64_t b, std::int64_t head, std::size_t i) {
        AttentionProducts& products = products_[i];
        const QueryBlock& block = g_.blocks[i];
        const dnnl::stream& stream = setup_.library.stream;
        const std::int64_t group = head / g_.sharing();
        const T* q = qkv_ + g_.q_at(b, head, block.first);
        const T* k = keys_ + g_.k_at(b, group);
        const T* dout = dcontext_ + g_.context_at(b, head, block.first);
        products.dprobabilities.run(dout, keys_ + g_.v_at(b, group), tile<float>(dp_), stream);
        const T* dropped = tile<T>(dropped_tile_);
        if (is_flash()) {
            products.scores.run(q, k, tile<float>(p_), stream);
            flash_gradients(moment, b, head, block);
        } else {
            saved_gradients(b, head, block);
            dropped = dropped_ + g_.saved_row(b, head, block.first) * g_.key_count;
        }
        products.dvalue.run(dropped, dout, tile<float>(dvalue_), stream);
        products.dquery.run(tile<T>(ds_), k, dqkv_ + g_.q_at(b, head, block.first), stream);
        products.dkey.run(tile<T>(ds_), q, tile<float>(dkey_), stream);
    }
    /// rowsum(dO O)
    float delta(std::int64_t b, std::int64_t head, std::int64_t q) const {
        const T* out = context_ + g_.context_at(b, head, q);
        const T* dout = dcontext_ + g_.context_at(b, head, q);
        const std::int64_t d = g_.op.head_dim;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t c = 0; c < d; ++c) sum += load(out[c]) * load(dout[c]);
        return sum;
    }

    void flash_gradients(const Moment& moment, std::int64_t b, std::int64_t head, const QueryBlock& block) const {
        float* p = tile<float>(p_);
        float* dp = tile<float>(dp_);
        T* dropped = tile<T>(dropped_tile_);
        T* ds = tile<T>(ds_);
        const AttentionDropout dropout(g_.op, setup_.seed, moment.step);
        parallel_rows(block.queries, g_.key_count, [=, this](std::int64_t r) {
            const std::int64_t q = block.first + r, visible = g_.visible(q), at_row = r * g_.key_count;
            const float minus = delta(b, head, q), scale = g_.scale;
            float* row = p + at_row;
            float* drow = dp + at_row;
            T* dropped_row = dropped + at_row;
            T* ds_row = ds + at_row;
            softmax_row(row, visible, scale, lse_[g_.saved_row(b, head, q)]);
            if (dropout.probability > 0) {
                const std::uint64_t first = g_.first_draw(moment.micro_batch, b, head, q);
                g_.for_visible(q, [=](std::int64_t k, std::int64_t at) {
                    const float factor = dropout.factor(first + at);
                    dropped_row[k] = store<T>(row[k] * factor);
                    drow[k] *= factor;
                });
            } else {
                for (std::int64_t k = 0; k < visible; ++k) dropped_row[k] = store<T>(row[k]);
            }
            for (std::int64_t k = 0; k < visible; ++k) ds_row[k] = store<T>(row[k] * (drow[k] - minus) * scale);
            for (std::int64_t k = visible; k < block.keys; ++k) dropped_row[k] = ds_row[k] = T{};
        });
    }
    void saved_gradients(std::int64_t b, std::int64_t head, const QueryBlock& block) const {
        const float* dp = tile<float>(dp_);
        T* ds = tile<T>(ds_);
        const std::int64_t keys = g_.key_count, saved = g_.saved_row(b, head, block.first) * keys;
        const float kept = mask_ != nullptr ? 1.0F / (1.0F - static_cast<float>(g_.op.dropout)) : 1.0F;
        parallel_rows(block.queries, keys, [=, this](std::int64_t r) {
            const std::int64_t q = block.first + r, visible = g_.visible(q);
            const float minus = delta(b, head, q), scale = g_.scale;
            const T* row = probabilities_ + saved + r * keys;
            const float* drow = dp + r * keys;
            T* ds_row = ds + r * keys;
            if (mask_ != nullptr) {
                const std::uint8_t* mask = mask_ + saved + r * keys;
                for (std::int64_t k = 0; k < visible; ++k) {
                    const float through = mask[k] != 0 ? drow[k] * kept : 0.0F;
                    ds_row[k] = store<T>(load(row[k]) * (through - minus) * scale);
                }
            } else {
                for (std::int64_t k = 0; k < visible; ++k)
                    ds_row[k] = store<T>(load(row[k]) * (drow[k] - minus) * scale);
            }
            for (std::int64_t k = visible; k < block.keys; ++k) ds_row[k] = T{};
        });
    }
    void store_rows(const float* from, T* to) const {
        const std::int64_t d = g_.op.head_dim, row = g_.key_row();
        const bool adds = !g_.is_first_step();
        parallel_rows(g_.key_count, d, [=](std::int64_t s) {
            T* const at = to + s * row;
            for (std::int64_t c = 0; c < d; ++c)
                at[c] = store<T>(adds ? load(at[c]) + from[s * d + c] : from[s * d + c]);
        });
    }
    void clear_own_keys(std::int64_t b, std::int64_t group) const {
        T* const first = dqkv_ + g_.own_k_at(b, group);
        const std::int64_t n = 2 * g_.op.head_dim, row = g_.row();
        parallel_rows(g_.op.seq, n, [=](std::int64_t s) {
            for (std::int64_t c = 0; c < n; ++c) first[s * row + c] = T{};
        });
    }

    std::size_t ring_;  // 1 in a ring: slots are one later then
    AttentionGeometry g_;
    KernelSetup setup_;
    const T* dcontext_;
    const T* qkv_;
    const T* keys_;
    const T* context_;
    T* dqkv_;
    T* dkeys_;
    const float* lse_ = nullptr;
    const T* probabilities_ = nullptr;
    const std::uint8_t* mask_ = nullptr;
    const T* dropped_ = nullptr;
    std::vector<AttentionProducts> products_;  // by block of queries
    ScratchPlan plan_;
    std::int64_t p_ = 0, dp_ = 0, dropped_tile_ = 0, ds_ = 0, dkey_ = 0, dvalue_ = 0, temporaries_ = 0;
    std::byte* scratch_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_backward(const step::Attention& op, const Operands& o,
                                                const KernelSetup& setup) {
    const bool is_ring = op.part == step::Attention::Part::ring;
    const bool keeps_mask = op.algorithm == plan::AttentionAlgorithm::unfused && op.dropout > 0;
    expect_slots(o, is_ring ? 5 : (keeps_mask ? 6 : 4), is_ring ? 2 : 1, "attention backward");
    if (is_ring)
        for (const Output& output : o.out) expect_ring_access(op, output);
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        return std::make_unique<AttentionBackward<decltype(type)>>(op, o, setup);
    });
}

}  // namespace lockstep::cpu
