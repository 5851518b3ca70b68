// Softmax of a row of scores by the threads of a group, and dropout of its probabilities.
#include "gpu/attention_rows.cuh"
#include "gpu/element.cuh"
#include "gpu/launch.cuh"

namespace lockstep::gpu {
namespace {

/// Largest of scale x scores, and the sum of exp(scale x scores - largest).
struct Normaliser {
    float largest, sum;
    __host__ __device__ float probability(float score, float scale) const {
        return expf(score * scale - largest) / sum;
    }
};
template <class Group>
__host__ __device__ Normaliser normaliser(const float* scores, std::int64_t n, float scale, const Group& group) {
    float largest = -INFINITY;
    for (std::int64_t k = group.thread(); k < n; k += group.threads()) largest = fmaxf(largest, scores[k]);
    largest = group.max(largest) * scale;
    float sum = 0;
    for (std::int64_t k = group.thread(); k < n; k += group.threads()) sum += expf(scores[k] * scale - largest);
    return {largest, group.sum(sum)};
}

template <class T>
struct SoftmaxRow {
    AttentionPlace place;
    AttentionTile tile;
    AttentionDraws draws;
    const float* scores;
    T* weights;
    float* log_sum_exp;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const Row r = row_of(place, tile, row);
        const float* in = scores + row * tile.row;
        T* out = weights + row * tile.row;
        const Normaliser n = normaliser(in, r.visible, place.scale, group);
        const RowDraws row_draws(place, draws, r);
        for (std::int64_t k = group.thread(); k < tile.keys; k += group.threads()) {
            float weight = k < r.visible ? n.probability(in[k], place.scale) : 0.0F;
            if (draws.probability > 0 && k < r.visible)
                weight = row_draws.keeps(place, draws, k) ? weight * row_draws.kept : 0.0F;
            out[k] = store<T>(weight);
        }
        if (group.thread() == 0) log_sum_exp[r.saved] = r.visible > 0 ? n.largest + logf(n.sum) : -INFINITY;
    }
};

template <class T>
struct SoftmaxKeptRow {
    AttentionPlace place;
    AttentionTile tile;
    AttentionDraws draws;
    const float* scores;
    T* probabilities;
    std::uint8_t* mask;
    T* dropped;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const Row r = row_of(place, tile, row);
        const float* in = scores + row * tile.row;
        const std::int64_t at = r.saved * place.keys;
        const Normaliser n = normaliser(in, r.visible, place.scale, group);
        const RowDraws row_draws(place, draws, r);
        for (std::int64_t k = group.thread(); k < place.keys; k += group.threads()) {
            const float probability = k < r.visible ? n.probability(in[k], place.scale) : 0.0F;
            probabilities[at + k] = store<T>(probability);
            if (mask == nullptr) continue;
            const bool keeps = k < r.visible && row_draws.keeps(place, draws, k);
            mask[at + k] = keeps ? 1 : 0;
            dropped[at + k] = store<T>(keeps ? probability * row_draws.kept : 0.0F);
        }
    }
};

template <class T>
struct MergeRow {
    AttentionPlace place;
    AttentionTile tile;
    const float* part;
    const float* part_log_sum_exp;
    T* context;
    float* log_sum_exp;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const Row r = row_of(place, tile, row);
        if (r.visible == 0) return;
        const float before = log_sum_exp[r.saved], now = part_log_sum_exp[r.saved];
        const float largest = fmaxf(before, now);
        const float joined = largest + logf(expf(before - largest) + expf(now - largest));
        const float keep = expf(before - joined), add = expf(now - joined);
        T* out = context + context_at(place, r);
        for (std::int64_t c = group.thread(); c < place.head_dim; c += group.threads())
            out[c] = store<T>(load(out[c]) * keep + part[row * place.head_dim + c] * add);
        group.barrier();  // all have read it
        if (group.thread() == 0) log_sum_exp[r.saved] = joined;
    }
};

}  // namespace

void softmax_rows(const AttentionPlace& place, const AttentionTile& tile, const AttentionDraws& draws, DType dtype,
                  const float* scores, void* weights, float* log_sum_exp, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const SoftmaxRow<T> body{place, tile, draws, scores, static_cast<T*>(weights), log_sum_exp};
        launch_rows(rows_of(place, tile), tile.keys, body, stream);
    });
}

void softmax_kept_rows(const AttentionPlace& place, const AttentionTile& tile, const AttentionDraws& draws, DType dtype,
                       const float* scores, const KeptProbabilities& kept, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const SoftmaxKeptRow<T> body{
            place, tile, draws, scores, static_cast<T*>(kept.probabilities), kept.mask, static_cast<T*>(kept.dropped)};
        launch_rows(rows_of(place, tile), place.keys, body, stream);
    });
}

void merge_rows(const AttentionPlace& place, const AttentionTile& tile, DType dtype, const float* part,
                const float* part_log_sum_exp, void* context, float* log_sum_exp, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const MergeRow<T> body{place, tile, part, part_log_sum_exp, static_cast<T*>(context), log_sum_exp};
        launch_rows(rows_of(place, tile), place.head_dim, body, stream);
    });
}

}  // namespace lockstep::gpu
