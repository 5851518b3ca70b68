// Batch norm in three kernels each way: sums over chunks of rows, their totals per feature, the normalised elements.
// x is [rows, features], features of an image's pixel side by side, so that neighbouring threads read neighbouring
// elements; a thread takes 16 bytes of a row where that fits.
#include "gpu/batch_norm.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "gpu/element.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"

namespace lockstep::gpu {
namespace {

struct Extent {
    std::int64_t rows;
    std::uint32_t features, chunks;  ///< row r belongs to chunk r modulo chunks
    float epsilon;
};

/// V neighbouring elements, read and written at once.
template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
    T value[V];
};
template <class T, int V>
__host__ __device__ Pack<T, V> read(const T* from) {
    return *reinterpret_cast<const Pack<T, V>*>(from);
}

/// Parameters and their gradients in whatever type they have: few, so a test for each costs nothing.
struct Parameters {
    void* data;
    DType dtype;
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

/// The element's row and first feature for thread i of the sums, which are [2, chunks, features].
template <int V>
struct SumPlace {
    std::uint32_t chunk, feature;
    __host__ __device__ SumPlace(const Extent& e, std::int64_t i)
        : chunk(static_cast<std::uint32_t>(i) / (e.features / V)),
          feature(static_cast<std::uint32_t>(i) % (e.features / V) * V) {}
};

/// Calls f(j, row's element index) for the rows of a chunk.
template <class F>
__host__ __device__ void for_chunk(const Extent& e, std::uint32_t chunk, std::uint32_t feature, F f) {
    const std::int64_t stride = static_cast<std::int64_t>(e.chunks) * e.features;
    const std::int64_t end = e.rows * e.features;
    for (std::int64_t at = static_cast<std::int64_t>(chunk) * e.features + feature; at < end; at += stride) f(at);
}

template <int V>
__host__ __device__ void keep(float* sums, const Extent& e, const SumPlace<V>& place, const float* first,
                              const float* second) {
    const std::size_t at = static_cast<std::size_t>(place.chunk) * e.features + place.feature;
    const std::size_t half = static_cast<std::size_t>(e.chunks) * e.features;
    for (int j = 0; j < V; ++j) {
        sums[at + j] = first[j];
        sums[half + at + j] = second[j];
    }
}

/// Of x - pivot and its square, where the pivot is the feature's first element: near the mean, so that little cancels.
template <class T, int V>
struct ForwardSums {
    Extent e;
    const T* x;
    float* sums;
    __host__ __device__ void operator()(std::int64_t i) const {
        const SumPlace<V> place(e, i);
        float pivot[V], first[V] = {}, second[V] = {};
        const auto row = read<T, V>(x + place.feature);
        for (int j = 0; j < V; ++j) pivot[j] = load(row.value[j]);
        for_chunk(e, place.chunk, place.feature, [&](std::int64_t at) {
            const auto values = read<T, V>(x + at);
            for (int j = 0; j < V; ++j) {
                const float d = load(values.value[j]) - pivot[j];
                first[j] += d;
                second[j] += d * d;
            }
        });
        keep<V>(sums, e, place, first, second);
    }
};

/// Totals of the two sums of a feature, in every thread of the group.
template <class Group>
__host__ __device__ void total(const Extent& e, const float* sums, std::int64_t feature, const Group& group,
                               float& first, float& second) {
    const std::int64_t half = static_cast<std::int64_t>(e.chunks) * e.features;
    float a = 0, b = 0;
    for (std::int64_t chunk = group.thread(); chunk < e.chunks; chunk += group.threads()) {
        a += sums[chunk * e.features + feature];
        b += sums[half + chunk * e.features + feature];
    }
    first = group.sum(a);
    second = group.sum(b);
}

/// Statistics of each feature, and [2, features]: factor and summand of x - mean.
struct ForwardTotals {
    Extent e;
    const float* sums;
    Parameters pivot, scale, shift;                                     ///< shift.data null: none
    float *mean, *inverse_deviation, *running_mean, *running_variance;  ///< running ones null: none
    float* line;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t feature, const Group& group) const {
        float first = 0, second = 0;
        total(e, sums, feature, group, first, second);
        if (group.thread() != 0) return;
        const auto n = static_cast<float>(e.rows);
        const float offset = first / n, variance = fmaxf(second / n - offset * offset, 0.0F);
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

template <class T, int V>
struct ForwardElements {
    Extent e;
    const T* x;
    const float *mean, *line;
    T* y;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::uint32_t feature = static_cast<std::uint32_t>(i) % (e.features / V) * V;
        auto values = read<T, V>(x + i * V);
        for (int j = 0; j < V; ++j)
            values.value[j] = store<T>((load(values.value[j]) - mean[feature + j]) * line[feature + j] +
                                       line[e.features + feature + j]);
        *reinterpret_cast<Pack<T, V>*>(y + i * V) = values;
    }
};

/// Of dy and dy (x - mean).
template <class T, int V>
struct BackwardSums {
    Extent e;
    const T *dy, *x;
    const float* mean;
    float* sums;
    __host__ __device__ void operator()(std::int64_t i) const {
        const SumPlace<V> place(e, i);
        float average[V], first[V] = {}, second[V] = {};
        for (int j = 0; j < V; ++j) average[j] = mean[place.feature + j];
        for_chunk(e, place.chunk, place.feature, [&](std::int64_t at) {
            const auto gradients = read<T, V>(dy + at);
            const auto values = read<T, V>(x + at);
            for (int j = 0; j < V; ++j) {
                const float g = load(gradients.value[j]);
                first[j] += g;
                second[j] += g * (load(values.value[j]) - average[j]);
            }
        });
        keep<V>(sums, e, place, first, second);
    }
};

/// Parameter gradients, and [3, features]: dx = p dy + q (x - mean) + r, from
/// dx = scale / deviation (dy - mean(dy) - (x - mean) / deviation^2 mean(dy (x - mean))).
struct BackwardTotals {
    Extent e;
    const float* sums;
    const float* inverse_deviation;
    Parameters scale, dscale, dshift;  ///< dshift.data null: none
    bool adds_dscale, adds_dshift;
    float* line;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t feature, const Group& group) const {
        float first = 0, second = 0;
        total(e, sums, feature, group, first, second);
        if (group.thread() != 0) return;
        const auto n = static_cast<float>(e.rows);
        const float inverse = inverse_deviation[feature], p = scale.at(feature) * inverse;
        dscale.set(feature, second * inverse, adds_dscale);
        if (dshift.data != nullptr) dshift.set(feature, first, adds_dshift);
        line[feature] = p;
        line[e.features + feature] = -p * inverse * inverse * second / n;
        line[2 * static_cast<std::int64_t>(e.features) + feature] = -p * first / n;
    }
};

template <class T, int V>
struct BackwardElements {
    Extent e;
    const T *dy, *x;
    const float *mean, *line;
    T* dx;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::uint32_t feature = static_cast<std::uint32_t>(i) % (e.features / V) * V;
        const auto gradients = read<T, V>(dy + i * V);
        auto values = read<T, V>(x + i * V);
        const float *p = line + feature, *q = p + e.features, *r = q + e.features;
        for (int j = 0; j < V; ++j)
            values.value[j] =
                store<T>(p[j] * load(gradients.value[j]) + q[j] * (load(values.value[j]) - mean[feature + j]) + r[j]);
        *reinterpret_cast<Pack<T, V>*>(dx + i * V) = values;
    }
};

/// Rows are shared out so that about 65536 threads sum, which is enough to keep any device's memory busy.
Extent extent_of(const step::Norm& n, int width) {
    const std::int64_t rows = n.rows * n.spatial, threads_of_row = n.features / width;
    if (rows * threads_of_row > std::numeric_limits<std::uint32_t>::max())
        throw RuntimeError(
            fmt::format("a batch norm of {} x {} elements is beyond 32-bit indices; use a smaller "
                        "batch_per_rank",
                        rows, n.features));
    const std::int64_t chunks = std::clamp<std::int64_t>(65536 / threads_of_row, 1, rows);
    return {rows, static_cast<std::uint32_t>(n.features), static_cast<std::uint32_t>(chunks),
            static_cast<float>(n.epsilon)};
}

template <class T, int V>
class OwnBatchNorm final : public Kernel {
public:
    OwnBatchNorm(const step::Norm& norm, const Operands& o)
        : is_forward_(norm.pass == step::Pass::forward), e_(extent_of(norm, V)), o_(o) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        if (is_forward_)
            forward(stream);
        else
            backward(moment, stream);
    }
    std::int64_t workspace_bytes() const override {
        return (2 * static_cast<std::int64_t>(e_.chunks) + 3) * e_.features * static_cast<std::int64_t>(sizeof(float));
    }
    void bind_workspace(std::byte* workspace) override { sums_ = reinterpret_cast<float*>(workspace); }

private:
    float* line() const { return sums_ + 2 * static_cast<std::int64_t>(e_.chunks) * e_.features; }
    std::int64_t sum_threads() const { return static_cast<std::int64_t>(e_.chunks) * e_.features / V; }
    std::int64_t packs() const { return e_.rows * e_.features / V; }
    void forward(cudaStream_t stream) const {
        const T* x = pointer<T>(o_.in[0]);
        const bool has_shift = o_.in.size() > 2, has_running = o_.out.size() > 4;
        float* const mean = floats(o_.out[1]);
        launch_elements(sum_threads(), ForwardSums<T, V>{e_, x, sums_}, stream);
        launch_rows(
            e_.features, e_.chunks,
            ForwardTotals{e_, sums_, parameters(o_.in[0]), parameters(o_.in[1]),
                          has_shift ? parameters(o_.in[2]) : Parameters{}, mean, floats(o_.out[2]),
                          has_running ? floats(o_.out[3]) : nullptr, has_running ? floats(o_.out[4]) : nullptr, line()},
            stream);
        launch_elements(packs(), ForwardElements<T, V>{e_, x, mean, line(), pointer<T>(o_.out[0])}, stream);
    }
    void backward(const Moment& moment, cudaStream_t stream) const {
        const T *dy = pointer<T>(o_.in[0]), *x = pointer<T>(o_.in[1]);
        const float* mean = floats(o_.in[3]);
        const bool has_shift = o_.out.size() > 2;
        launch_elements(sum_threads(), BackwardSums<T, V>{e_, dy, x, mean, sums_}, stream);
        launch_rows(e_.features, e_.chunks,
                    BackwardTotals{e_, sums_, floats(o_.in[4]), parameters(o_.in[2]), parameters(o_.out[1]),
                                   has_shift ? parameters(o_.out[2]) : Parameters{}, adds(o_.out[1].access, moment),
                                   has_shift && adds(o_.out[2].access, moment), line()},
                    stream);
        launch_elements(packs(), BackwardElements<T, V>{e_, dy, x, mean, line(), pointer<T>(o_.out[0])}, stream);
    }

    bool is_forward_;
    Extent e_;
    Operands o_;
    float* sums_ = nullptr;  // [2, chunks, features], then the line's coefficients
};

bool is_aligned(const Operand& o) { return reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0; }

}  // namespace

std::unique_ptr<Kernel> make_own_batch_norm(const step::Norm& norm, const Operands& o) {
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        constexpr int width = 16 / sizeof(T);
        const bool is_backward = norm.pass != step::Pass::forward;
        if (norm.features % width == 0 && is_aligned(o.in[0]) && is_aligned(o.out[0]) &&
            (!is_backward || is_aligned(o.in[1])))
            return std::make_unique<OwnBatchNorm<T, width>>(norm, o);
        return std::make_unique<OwnBatchNorm<T, 1>>(norm, o);
    });
}

}  // namespace lockstep::gpu
