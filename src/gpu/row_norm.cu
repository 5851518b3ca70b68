// Layer norm and RMS norm (Zhang and Sennrich 2019): per row over the features.
#include <cmath>

#include "base/error.hpp"
#include "gpu/column_sums.cuh"
#include "gpu/kernels.hpp"

namespace lockstep::gpu {
namespace {

/// Slots by name, for both kinds: an RMS norm has no mean and no shift.
struct Slots {
    bool has_mean;
    explicit Slots(const step::Norm& norm) : has_mean(norm.kind == model::Norm::Kind::layer) {}
    std::size_t inverse_out() const { return has_mean ? 2 : 1; }
    std::size_t inverse_in() const { return has_mean ? 4 : 3; }
};

/// y = (x - mean) inverse scale + shift. means is null in an RMS norm; shift may be null.
template <class T, class P>
struct Forward {
    static constexpr int N = pack_of<T, P>;
    const T* x;
    const P *scale, *shift;
    T* y;
    float *means, *inverses;
    std::int64_t features, head;
    float epsilon;
    bool add;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const RowSpan span{row * features, features, head};
        float mean = 0;
        if (means != nullptr) {
            float sum = 0;
            for_packs<N>(group, span, [&](auto pack, std::int64_t i) {
                constexpr int M = decltype(pack)::value;
                const Pack<float, M> values = load_pack<M>(x, span.first + i);
                for (int k = 0; k < M; ++k) sum += values.at[k];
            });
            mean = group.sum(sum) / static_cast<float>(features);
        }
        float squares = 0;
        for_packs<N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> values = load_pack<M>(x, span.first + i);
            for (int k = 0; k < M; ++k) squares += (values.at[k] - mean) * (values.at[k] - mean);
        });
        const float inverse = 1.0F / sqrtf(group.sum(squares) / static_cast<float>(features) + epsilon);
        if (group.thread() == 0) {
            if (means != nullptr) means[row] = mean;
            inverses[row] = inverse;
        }
        for_packs<N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> values = load_pack<M>(x, span.first + i);
            const Pack<float, M> scales = load_pack<M>(scale, i);
            for (int k = 0; k < M; ++k) values.at[k] = (values.at[k] - mean) * inverse * scales.at[k];
            if (shift != nullptr) {
                const Pack<float, M> shifts = load_pack<M>(shift, i);
                for (int k = 0; k < M; ++k) values.at[k] += shifts.at[k];
            }
            store_pack(y, span.first + i, values, add);
        });
    }
};

/// dx = inverse (g - mean(g) - normal mean(g normal)), g = dy scale; an RMS norm has no mean(g) term.
template <class T, class P>
struct BackwardRows {
    static constexpr int N = pack_of<T, P>;
    const T *dy, *x;
    const P* scale;
    const float *means, *inverses;
    T* dx;
    std::int64_t features, head;
    bool add;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const RowSpan span{row * features, features, head};
        const float mean = means != nullptr ? means[row] : 0.0F, inverse = inverses[row];
        float sum = 0, product = 0;
        for_packs<N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> gradients = load_pack<M>(dy, span.first + i), values = load_pack<M>(x, span.first + i);
            const Pack<float, M> scales = load_pack<M>(scale, i);
            for (int k = 0; k < M; ++k) {
                const float g = gradients.at[k] * scales.at[k];
                sum += g;
                product += g * (values.at[k] - mean) * inverse;
            }
        });
        const float mean_g = means != nullptr ? group.sum(sum) / static_cast<float>(features) : 0.0F;
        const float mean_product = group.sum(product) / static_cast<float>(features);
        for_packs<N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> gradients = load_pack<M>(dy, span.first + i), values = load_pack<M>(x, span.first + i);
            Pack<float, M> scales = load_pack<M>(scale, i);
            for (int k = 0; k < M; ++k) {
                const float normal = (values.at[k] - mean) * inverse;
                scales.at[k] = inverse * (gradients.at[k] * scales.at[k] - mean_g - normal * mean_product);
            }
            store_pack(dx, span.first + i, scales, add);
        });
    }
};

/// dscale = sum over rows of dy normal, dshift = sum of dy.
template <class T>
struct ScaleAndShift {
    static constexpr int count = 2;
    const T *dy, *x;
    const float *means, *inverses;
    std::int64_t features;
    template <int M>
    __host__ __device__ void add(std::int64_t row, std::int64_t column, Pack<float, M> (&sums)[count]) const {
        const float mean = means != nullptr ? means[row] : 0.0F, inverse = inverses[row];
        const Pack<float, M> gradients = load_pack<M>(dy, row * features + column);
        const Pack<float, M> values = load_pack<M>(x, row * features + column);
        for (int k = 0; k < M; ++k) {
            sums[0].at[k] += gradients.at[k] * (values.at[k] - mean) * inverse;
            sums[1].at[k] += gradients.at[k];
        }
    }
};

template <class T, class P>
std::unique_ptr<Kernel> make_forward(const step::Norm& norm, const Operands& o) {
    constexpr int N = Forward<T, P>::N;
    const Slots slots(norm);
    Forward<T, P> body{pointer<T>(o.in[0]),
                       pointer<P>(o.in[1]),
                       o.in.size() > 2 ? pointer<P>(o.in[2]) : nullptr,
                       pointer<T>(o.out[0]),
                       slots.has_mean ? floats(o.out[1]) : nullptr,
                       floats(o.out[slots.inverse_out()]),
                       norm.features,
                       -1,
                       static_cast<float>(norm.epsilon),
                       false};
    const P* shift = body.shift != nullptr ? body.shift : body.scale;
    if (norm.features % N == 0 && elements_before_packs<N>(body.x, body.scale, shift, body.y) == 0) body.head = 0;
    return make_function_kernel(
        [body, rows = norm.rows, access = o.out[0].access](const Moment& moment, cudaStream_t stream) mutable {
            body.add = adds(access, moment);
            launch_rows(rows, body.features / N, body, stream);
        });
}

template <class T, class P>
class BackwardKernel final : public Kernel {
public:
    BackwardKernel(const step::Norm& norm, const Operands& o)
        : rows_(norm.rows),
          outputs_(o.out),
          body_{pointer<T>(o.in[0]),
                pointer<T>(o.in[1]),
                pointer<P>(o.in[2]),
                Slots(norm).has_mean ? floats(o.in[3]) : nullptr,
                floats(o.in[Slots(norm).inverse_in()]),
                pointer<T>(o.out[0]),
                norm.features,
                -1,
                false},
          sums_({body_.dy, body_.x, body_.means, body_.inverses, norm.features}, norm.rows, norm.features,
                elements_before_packs<N>(body_.dy, body_.x) == 0) {
        constexpr int M = BackwardRows<T, P>::N;
        if (norm.features % M == 0 && elements_before_packs<M>(body_.dy, body_.x, body_.scale, body_.dx) == 0)
            body_.head = 0;
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        body_.add = adds(outputs_[0].access, moment);
        launch_rows(rows_, body_.features / BackwardRows<T, P>::N, body_, stream);
        sums_.launch_partial(stream);
        for (std::size_t which = 0; which + 1 < outputs_.size(); ++which) {
            const Output& y = outputs_[which + 1];
            sums_.launch_finish(static_cast<int>(which), y, adds(y.access, moment), stream);
        }
    }
    std::int64_t workspace_bytes() const override { return sums_.workspace_bytes(); }
    void bind_workspace(std::byte* workspace) override { sums_.bind_workspace(workspace); }

private:
    static constexpr int N = pack_of<T>;
    std::int64_t rows_;
    std::vector<Output> outputs_;
    BackwardRows<T, P> body_;
    ColumnSums<N, ScaleAndShift<T>> sums_;
};

}  // namespace

std::unique_ptr<Kernel> make_row_norm(const step::Norm& norm, const Operands& o) {
    const Slots slots(norm);
    const bool is_forward = norm.pass == step::Pass::forward;
    if (is_forward)
        expect_slots(o, 2, slots.inverse_out() + 1, "norm");
    else
        expect_slots(o, slots.inverse_in() + 1, 2, "norm backward");
    return with_type(o.in[is_forward ? 0 : 1].dtype, [&](auto value) {
        return with_type(o.in[is_forward ? 1 : 2].dtype, [&](auto parameter) -> std::unique_ptr<Kernel> {
            using T = decltype(value);
            using P = decltype(parameter);
            if (is_forward) return make_forward<T, P>(norm, o);
            return std::make_unique<BackwardKernel<T, P>>(norm, o);
        });
    });
}

}  // namespace lockstep::gpu
