// Tokens to the rows of experts and back, weighted by the router's softmax.
#include <cmath>

#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

/// Row i = that of the token which takes it, 0 where nobody does.
template <class Bits>
struct GatherRows {
    static constexpr int N = pack_of<Bits>;
    const Bits* x;
    const std::int32_t* row_tokens;
    Bits* y;
    std::int64_t top_k, width, head;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const std::int64_t choice = row_tokens[row], from = choice / top_k * width, to = row * width;
        for_packs<N>(group, RowSpan{to, width, head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<Bits, M> values{};
            if (choice >= 0) values = raw_pack<M>(x, from + i);
            store_raw(y, to + i, values);
        });
    }
};

/// dx = factor x the sum of a token's rows, in the order of the choices.
template <class T>
struct AddRows {
    static constexpr int N = pack_of<T>;
    const T* dy;
    const std::int32_t* token_rows;
    T* dx;
    std::int64_t top_k, width, head;
    float factor;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t token, const Group& group) const {
        const std::int64_t to = token * width;
        for_packs<N>(group, RowSpan{to, width, head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> sums{};
            for (std::int64_t j = 0; j < top_k; ++j) {
                const std::int64_t row = token_rows[token * top_k + j];
                if (row < 0) continue;
                const Pack<float, M> values = load_pack<M>(dy, row * width + i);
                for (int k = 0; k < M; ++k) sums.at[k] += values.at[k];
            }
            for (int k = 0; k < M; ++k) sums.at[k] *= factor;
            store_pack(dx, to + i, sums);
        });
    }
};

/// The softmax of one token's logits: its largest logit and the inverse of the sum.
template <class T>
struct Softmax {
    const T* logits;
    float largest = -INFINITY, inverse_sum = 0;
    template <class Group>
    __host__ __device__ Softmax(const T* logits_, std::int64_t experts, const Group& group) : logits(logits_) {
        for (std::int64_t e = group.thread(); e < experts; e += group.threads())
            largest = fmaxf(largest, load(logits[e]));
        largest = group.max(largest);
        float sum = 0;
        for (std::int64_t e = group.thread(); e < experts; e += group.threads()) sum += expf(load(logits[e]) - largest);
        inverse_sum = 1 / group.sum(sum);
    }
    __host__ __device__ float operator()(std::int64_t expert) const {
        return expf(load(logits[expert]) - largest) * inverse_sum;
    }
};

template <class T>
struct Combined {
    static constexpr int N = pack_of<T>;
    const T *x, *logits;
    const std::int32_t *token_rows, *row_tokens;
    std::int64_t experts, top_k, rows_per_expert, width, head;
    template <class Group>
    __host__ __device__ Softmax<T> softmax(std::int64_t token, const Group& group) const {
        return {logits + token * experts, experts, group};
    }
    __host__ __device__ std::int64_t row_of(std::int64_t token, std::int64_t choice) const {
        return token_rows[token * top_k + choice];
    }
};

template <class T>
struct CombineRows {
    Combined<T> all;
    T* y;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t token, const Group& group) const {
        const Softmax<T> softmax = all.softmax(token, group);
        const std::int64_t to = token * all.width;
        for_packs<Combined<T>::N>(group, RowSpan{to, all.width, all.head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> sums{};
            for (std::int64_t j = 0; j < all.top_k; ++j) {
                const std::int64_t row = all.row_of(token, j);
                if (row < 0) continue;
                const float p = softmax(row / all.rows_per_expert);
                const Pack<float, M> values = load_pack<M>(all.x, row * all.width + i);
                for (int k = 0; k < M; ++k) sums.at[k] += p * values.at[k];
            }
            store_pack(y, to + i, sums);
        });
    }
};

template <class T>
struct CombineBackwardRows {
    Combined<T> all;
    const T* dy;
    T* dx;
    float factor;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const std::int64_t choice = all.row_tokens[row], token = choice < 0 ? 0 : choice / all.top_k;
        const Softmax<T> softmax = all.softmax(token, group);
        const float p = choice < 0 ? 0.0F : factor * softmax(row / all.rows_per_expert);
        const std::int64_t to = row * all.width;
        for_packs<Combined<T>::N>(group, RowSpan{to, all.width, all.head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> values{};
            if (choice >= 0) values = load_pack<M>(dy, token * all.width + i);
            for (int k = 0; k < M; ++k) values.at[k] *= p;
            store_pack(dx, to + i, values);
        });
    }
};

/// products[choice] = dy . row of the choice's expert; 0 for a dropped one.
template <class T>
struct RowProducts {
    Combined<T> all;
    const T* dy;
    float* products;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t choice, const Group& group) const {
        const std::int64_t row = all.token_rows[choice], from = choice / all.top_k * all.width;
        float sum = 0;
        if (row >= 0)
            for_packs<Combined<T>::N>(group, RowSpan{from, all.width, all.head}, [&](auto pack, std::int64_t i) {
                constexpr int M = decltype(pack)::value;
                const Pack<float, M> a = load_pack<M>(dy, from + i), b = load_pack<M>(all.x, row * all.width + i);
                for (int k = 0; k < M; ++k) sum += a.at[k] * b.at[k];
            });
        sum = group.sum(sum);
        if (group.thread() == 0) products[choice] = sum;
    }
};

/// dlogit_e = p_e (dp_e - sum over f of p_f dp_f), dp_e = the product of the token's row at e, 0 where it has none.
template <class T>
struct LogitGradients {
    Combined<T> all;
    const float* products;
    T* dlogits;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t token, const Group& group) const {
        const Softmax<T> softmax = all.softmax(token, group);
        const float* mine = products + token * all.top_k;
        float mean = 0;
        for (std::int64_t j = 0; j < all.top_k; ++j)
            if (const std::int64_t row = all.row_of(token, j); row >= 0)
                mean += softmax(row / all.rows_per_expert) * mine[j];
        for (std::int64_t e = group.thread(); e < all.experts; e += group.threads()) {
            float product = 0;
            for (std::int64_t j = 0; j < all.top_k; ++j)
                if (const std::int64_t row = all.row_of(token, j); row >= 0 && row / all.rows_per_expert == e)
                    product = mine[j];
            dlogits[token * all.experts + e] = store<T>(softmax(e) * (product - mean));
        }
    }
};

void expect_overwrite(const Operands& o, const char* kernel) {
    for (const Output& out : o.out)
        if (out.access != step::Access::overwrite) throw LogicError(std::string(kernel) + " can't add to its results");
}

template <int N, class... T>
std::int64_t head_of_rows(std::int64_t width, const T*... pointers) {
    return width % N == 0 && elements_before_packs<N>(pointers...) == 0 ? 0 : -1;
}

template <class T>
Combined<T> combined(const step::Combine& op, const Operand* in, const Operands& o) {
    Combined<T> all{pointer<T>(in[0]), pointer<T>(in[1]),  integers(in[2]), nullptr, op.experts,
                    op.top_k,          op.rows_per_expert, op.width,        -1};
    // The first input and the first output hold rows of this width too.
    all.head = head_of_rows<Combined<T>::N>(op.width, all.x, pointer<T>(o.in[0]), pointer<T>(o.out[0]));
    return all;
}

template <class T>
class CombineBackward final : public Kernel {
public:
    CombineBackward(const step::Combine& op, const Operands& o)
        : tokens_(op.tokens),
          all_(combined<T>(op, &o.in[1], o)),
          dy_(pointer<T>(o.in[0])),
          dx_(pointer<T>(o.out[0])),
          dlogits_(pointer<T>(o.out[1])),
          factor_(static_cast<float>(op.factor)) {
        all_.row_tokens = integers(o.in[4]);
    }
    void enqueue(const Moment&, cudaStream_t stream) override {
        const std::int64_t width = all_.width / Combined<T>::N;
        launch_rows(all_.experts * all_.rows_per_expert, width, CombineBackwardRows<T>{all_, dy_, dx_, factor_},
                    stream);
        launch_rows(tokens_ * all_.top_k, width, RowProducts<T>{all_, dy_, products_}, stream);
        launch_rows(tokens_, 1, LogitGradients<T>{all_, products_, dlogits_}, stream);
    }
    std::int64_t workspace_bytes() const override {
        return tokens_ * all_.top_k * static_cast<std::int64_t>(sizeof(float));
    }
    void bind_workspace(std::byte* workspace) override { products_ = reinterpret_cast<float*>(workspace); }

private:
    std::int64_t tokens_;
    Combined<T> all_;
    const T* dy_;
    T *dx_, *dlogits_;
    float factor_;
    float* products_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_dispatch(const step::Dispatch& op, const Operands& o) {
    expect_slots(o, 2, 1, "dispatch");
    expect_overwrite(o, "dispatch");
    const std::int32_t* places = integers(o.in[1]);
    if (op.pass == step::Pass::forward)
        return with_bits(o.in[0].dtype, [&](auto bits) -> std::unique_ptr<Kernel> {
            using Bits = decltype(bits);
            constexpr int N = GatherRows<Bits>::N;
            GatherRows<Bits> body{pointer<Bits>(o.in[0]), places, pointer<Bits>(o.out[0]), op.top_k, op.width, -1};
            body.head = head_of_rows<N>(op.width, body.x, body.y);
            return make_function_kernel([body, rows = op.rows](const Moment&, cudaStream_t stream) {
                launch_rows(rows, body.width / N, body, stream);
            });
        });
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        constexpr int N = AddRows<T>::N;
        AddRows<T> body{pointer<T>(o.in[0]),          places, pointer<T>(o.out[0]), op.top_k, op.width, -1,
                        static_cast<float>(op.factor)};
        body.head = head_of_rows<N>(op.width, body.dy, body.dx);
        return make_function_kernel([body, tokens = op.tokens](const Moment&, cudaStream_t stream) {
            launch_rows(tokens, body.width / N, body, stream);
        });
    });
}

std::unique_ptr<Kernel> make_combine(const step::Combine& op, const Operands& o) {
    const bool is_forward = op.pass == step::Pass::forward;
    expect_slots(o, is_forward ? 3 : 5, is_forward ? 1 : 2, "combine");
    expect_overwrite(o, "combine");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        if (!is_forward) return std::make_unique<CombineBackward<T>>(op, o);
        const CombineRows<T> body{combined<T>(op, &o.in[0], o), pointer<T>(o.out[0])};
        return make_function_kernel([body, tokens = op.tokens](const Moment&, cudaStream_t stream) {
            launch_rows(tokens, body.all.width / Combined<T>::N, body, stream);
        });
    });
}

}  // namespace lockstep::gpu
