// Batch norm in three kernels each way: sums over chunks of rows, their totals per feature, the normalised elements.
// x is [rows, features], a pixel's features side by side, so that neighbouring threads read neighbouring elements; a
// thread takes 16 bytes of a row where that fits (W elements).
#include "gpu/batch_norm.hpp"

#include "base/error.hpp"
#include "gpu/divide.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

struct Extent {
    std::int64_t rows, features;
    std::int64_t chunks;   ///< row r belongs to chunk r modulo chunks
    Divider packs_of_row;  ///< features / W
    float epsilon;
    __host__ __device__ std::int64_t of_sums() const { return chunks * features; }
};

/// Parameters and their gradients in whatever type they have: few, so a test for each costs nothing.
struct Parameters {
    void* data = nullptr;
    DType dtype = DType::fp32;
    __host__ __device__ float at(std::int64_t i) const {
        if (dtype == DType::fp16) return load(static_cast<const __half*>(data)[i]);
        if (dtype == DType::bf16) return load(static_cast<const __nv_bfloat16*>(data)[i]);
        return static_cast<const float*>(data)[i];
    }
    __host__ __device__ void set(std::int64_t i, float value, bool add) const {
        if (dtype == DType::fp16)
            write(static_cast<__half*>(data)[i], value, add);
        else if (dtype == DType::bf16)
            write(static_cast<__nv_bfloat16*>(data)[i], value, add);
        else
            write(static_cast<float*>(data)[i], value, add);
    }
};
Parameters parameters(const Operand& o) {
    with_type(o.dtype, [](auto) {});
    return {o.data, o.dtype};
}

/// Two sums per chunk and feature, [2, chunks, features]: thread i adds up the features from `feature` on of `chunk`.
template <int W>
struct ChunkSums {
    Extent e;
    float* sums;
    std::int64_t chunk, feature;
    Pack<float, W> first{}, second{};
    __host__ __device__ ChunkSums(const Extent& extent, float* all, std::int64_t i)
        : e(extent),
          sums(all),
          chunk(extent.packs_of_row.quotient(i)),
          feature(extent.packs_of_row.remainder(i, chunk) * W) {}
    /// f(k, element index of the row's pack) for the chunk's rows.
    template <class F>
    __host__ __device__ void for_rows(F f) const {
        const std::int64_t end = e.rows * e.features;
        for (std::int64_t at = chunk * e.features + feature; at < end; at += e.of_sums()) f(at);
    }
    __host__ __device__ void keep() const {
        store_pack(sums, chunk * e.features + feature, first);
        store_pack(sums, e.of_sums() + chunk * e.features + feature, second);
    }
};

/// Of x - pivot and its square, where the pivot is the feature's first element: near the mean, so that little cancels.
template <class T, int W>
struct ForwardSums {
    Extent e;
    const T* x;
    float* sums;
    __host__ __device__ void operator()(std::int64_t i) const {
        ChunkSums<W> mine(e, sums, i);
        const Pack<float, W> pivot = load_pack<W>(x, mine.feature);
        mine.for_rows([&](std::int64_t at) {
            const Pack<float, W> values = load_pack<W>(x, at);
            for (int k = 0; k < W; ++k) {
                const float d = values.at[k] - pivot.at[k];
                mine.first.at[k] += d;
                mine.second.at[k] += d * d;
            }
        });
        mine.keep();
    }
};

struct Totals {
    float first, second;
};
/// The two sums of a feature over all chunks, in every thread of the group.
template <class Group>
__host__ __device__ Totals total(const Extent& e, const float* sums, std::int64_t feature, const Group& group) {
    float first = 0, second = 0;
    for (std::int64_t chunk = group.thread(); chunk < e.chunks; chunk += group.threads()) {
        first += sums[chunk * e.features + feature];
        second += sums[e.of_sums() + chunk * e.features + feature];
    }
    return {group.sum(first), group.sum(second)};
}

/// Statistics of each feature, and the line y = factor (x - mean) + summand as [2, features].
struct ForwardTotals {
    Extent e;
    const float* sums;
    Parameters pivot, scale, shift;                                     ///< shift without data: none
    float *mean, *inverse_deviation, *running_mean, *running_variance;  ///< running ones null: none
    float* line;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t feature, const Group& group) const {
        const Totals sum = total(e, sums, feature, group);
        if (group.thread() != 0) return;
        const auto n = static_cast<float>(e.rows);
        const float offset = sum.first / n, variance = fmaxf(sum.second / n - offset * offset, 0.0F);
        const float average = pivot.at(feature) + offset, inverse = 1.0F / sqrtf(variance + e.epsilon);
        mean[feature] = average;
        inverse_deviation[feature] = inverse;
        line[feature] = scale.at(feature) * inverse;
        line[e.features + feature] = shift.data != nullptr ? shift.at(feature) : 0.0F;
        if (running_mean == nullptr) return;
        constexpr auto momentum = static_cast<float>(running_momentum);
        const float unbiased = n > 1 ? variance * (n / (n - 1)) : variance;
        running_mean[feature] += momentum * (average - running_mean[feature]);
        running_variance[feature] += momentum * (unbiased - running_variance[feature]);
    }
};

template <class T, int W>
struct ForwardElements {
    Extent e;
    const T* x;
    const float *mean, *line;
    T* y;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t feature = e.packs_of_row.remainder(i, e.packs_of_row.quotient(i)) * W;
        const Pack<float, W> average = load_pack<W>(mean, feature), factor = load_pack<W>(line, feature),
                             summand = load_pack<W>(line, e.features + feature);
        Pack<float, W> values = load_pack<W>(x, i * W);
        for (int k = 0; k < W; ++k) values.at[k] = (values.at[k] - average.at[k]) * factor.at[k] + summand.at[k];
        store_pack(y, i * W, values);
    }
};

/// Of dy and dy (x - mean).
template <class T, int W>
struct BackwardSums {
    Extent e;
    const T *dy, *x;
    const float* mean;
    float* sums;
    __host__ __device__ void operator()(std::int64_t i) const {
        ChunkSums<W> mine(e, sums, i);
        const Pack<float, W> average = load_pack<W>(mean, mine.feature);
        mine.for_rows([&](std::int64_t at) {
            const Pack<float, W> gradients = load_pack<W>(dy, at), values = load_pack<W>(x, at);
            for (int k = 0; k < W; ++k) {
                mine.first.at[k] += gradients.at[k];
                mine.second.at[k] += gradients.at[k] * (values.at[k] - average.at[k]);
            }
        });
        mine.keep();
    }
};

/// Parameter gradients, and the plane dx = p dy + q (x - mean) + r as [3, features], from
/// dx = scale / deviation (dy - mean(dy) - (x - mean) / deviation^2 mean(dy (x - mean))).
struct BackwardTotals {
    Extent e;
    const float* sums;
    const float* inverse_deviation;
    Parameters scale, dscale, dshift;  ///< dshift without data: none
    bool adds_dscale, adds_dshift;
    float* plane;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t feature, const Group& group) const {
        const Totals sum = total(e, sums, feature, group);
        if (group.thread() != 0) return;
        const auto n = static_cast<float>(e.rows);
        const float inverse = inverse_deviation[feature], p = scale.at(feature) * inverse;
        dscale.set(feature, sum.second * inverse, adds_dscale);
        if (dshift.data != nullptr) dshift.set(feature, sum.first, adds_dshift);
        plane[feature] = p;
        plane[e.features + feature] = -p * inverse * inverse * (sum.second / n);
        plane[2 * e.features + feature] = -p * (sum.first / n);
    }
};

template <class T, int W>
struct BackwardElements {
    Extent e;
    const T *dy, *x;
    const float *mean, *plane;
    T* dx;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t feature = e.packs_of_row.remainder(i, e.packs_of_row.quotient(i)) * W;
        const Pack<float, W> average = load_pack<W>(mean, feature), p = load_pack<W>(plane, feature),
                             q = load_pack<W>(plane, e.features + feature),
                             r = load_pack<W>(plane, 2 * e.features + feature);
        const Pack<float, W> gradients = load_pack<W>(dy, i * W);
        Pack<float, W> values = load_pack<W>(x, i * W);
        for (int k = 0; k < W; ++k)
            values.at[k] = p.at[k] * gradients.at[k] + q.at[k] * (values.at[k] - average.at[k]) + r.at[k];
        store_pack(dx, i * W, values);
    }
};

/// Rows are shared out so that about 65536 threads sum: enough to keep a large device's memory busy.
Extent extent_of(const step::Norm& n, int width) {
    const std::int64_t rows = n.rows * n.spatial, packs = n.features / width;
    return {rows, n.features, std::clamp<std::int64_t>(65536 / packs, 1, rows), Divider(packs),
            static_cast<float>(n.epsilon)};
}

template <class T, int W>
class OwnBatchNorm final : public Kernel {
public:
    OwnBatchNorm(const step::Norm& norm, const Operands& o)
        : is_forward_(norm.pass == step::Pass::forward), e_(extent_of(norm, W)), o_(o) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        if (is_forward_)
            forward(stream);
        else
            backward(moment, stream);
    }
    std::int64_t workspace_bytes() const override {
        return (2 * e_.of_sums() + 3 * e_.features) * static_cast<std::int64_t>(sizeof(float));
    }
    void bind_workspace(std::byte* workspace) override {
        sums_ = reinterpret_cast<float*>(workspace);
        coefficients_ = sums_ + 2 * e_.of_sums();
    }

private:
    std::int64_t sum_threads() const { return e_.of_sums() / W; }
    std::int64_t packs() const { return e_.rows * e_.features / W; }
    void forward(cudaStream_t stream) const {
        const T* x = pointer<T>(o_.in[0]);
        const bool has_shift = o_.in.size() > 2, has_running = o_.out.size() > 4;
        float* const mean = floats(o_.out[1]);
        launch_elements(sum_threads(), ForwardSums<T, W>{e_, x, sums_}, stream);
        launch_rows(e_.features, e_.chunks,
                    ForwardTotals{e_, sums_, parameters(o_.in[0]), parameters(o_.in[1]),
                                  has_shift ? parameters(o_.in[2]) : Parameters{}, mean, floats(o_.out[2]),
                                  has_running ? floats(o_.out[3]) : nullptr, has_running ? floats(o_.out[4]) : nullptr,
                                  coefficients_},
                    stream);
        launch_elements(packs(), ForwardElements<T, W>{e_, x, mean, coefficients_, pointer<T>(o_.out[0])}, stream);
    }
    void backward(const Moment& moment, cudaStream_t stream) const {
        const T *dy = pointer<T>(o_.in[0]), *x = pointer<T>(o_.in[1]);
        const float* mean = floats(o_.in[3]);
        const bool has_shift = o_.out.size() > 2;
        launch_elements(sum_threads(), BackwardSums<T, W>{e_, dy, x, mean, sums_}, stream);
        launch_rows(e_.features, e_.chunks,
                    BackwardTotals{e_, sums_, floats(o_.in[4]), parameters(o_.in[2]), parameters(o_.out[1]),
                                   has_shift ? parameters(o_.out[2]) : Parameters{}, adds(o_.out[1].access, moment),
                                   has_shift && adds(o_.out[2].access, moment), coefficients_},
                    stream);
        launch_elements(packs(), BackwardElements<T, W>{e_, dy, x, mean, coefficients_, pointer<T>(o_.out[0])}, stream);
    }

    bool is_forward_;
    Extent e_;
    Operands o_;
    float* sums_ = nullptr;          // [2, chunks, features]
    float* coefficients_ = nullptr;  // [2 or 3, features]
};

bool is_aligned(const Operand& o) { return reinterpret_cast<std::uintptr_t>(o.data) % widest_access == 0; }

}  // namespace

std::unique_ptr<Kernel> make_own_batch_norm(const step::Norm& norm, const Operands& o) {
    const bool is_forward = norm.pass == step::Pass::forward;
    const Operand& mean = is_forward ? o.out[1] : o.in[3];
    const bool are_aligned =
        is_aligned(o.in[0]) && is_aligned(o.out[0]) && is_aligned(mean) && (is_forward || is_aligned(o.in[1]));
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        if (are_aligned && norm.features % pack_of<T> == 0)
            return std::make_unique<OwnBatchNorm<T, pack_of<T>>>(norm, o);
        return std::make_unique<OwnBatchNorm<T, 1>>(norm, o);
    });
}

}  // namespace lockstep::gpu
