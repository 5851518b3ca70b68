// Gradient of a row of scores by the threads of a group: dS = P (f m dP - rowsum(dO O)) scale, with dropout's mask m
// and factor f; and the sums over rows that become gradients of keys and values.
#include "gpu/attention_rows.cuh"
#include "gpu/element.cuh"
#include "gpu/launch.cuh"

namespace lockstep::gpu {
namespace {

/// rowsum(dO O)
template <class T, class Group>
__host__ __device__ float delta(const AttentionPlace& p, const Row& r, const T* dcontext, const T* context,
                                const Group& group) {
    const std::int64_t at = context_at(p, r);
    float sum = 0;
    for (std::int64_t c = group.thread(); c < p.head_dim; c += group.threads())
        sum += load(dcontext[at + c]) * load(context[at + c]);
    return group.sum(sum);
}

template <class T>
struct GradientRow {
    AttentionPlace place;
    AttentionTile tile;
    AttentionDraws draws;
    const float* scores;
    const float* dprobabilities;
    const T* dcontext;
    const T* context;
    const float* log_sum_exp;
    T* dropped;
    T* dscores;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const Row r = row_of(place, tile, row);
        const float minus = delta(place, r, dcontext, context, group), lse = log_sum_exp[r.saved];
        const RowDraws row_draws(place, draws, r);
        const std::int64_t at = row * tile.row;
        for (std::int64_t k = group.thread(); k < tile.keys; k += group.threads()) {
            float probability = 0, factor = 1, through = 0;
            if (k < r.visible) {
                probability = expf(scores[at + k] * place.scale - lse);
                if (draws.probability > 0) factor = row_draws.keeps(place, draws, k) ? row_draws.kept : 0.0F;
                through = factor * dprobabilities[at + k] - minus;
            }
            dropped[at + k] = store<T>(probability * factor);
            dscores[at + k] = store<T>(probability * through * place.scale);
        }
    }
};

template <class T>
struct GradientKeptRow {
    AttentionPlace place;
    AttentionTile tile;
    float factor;  ///< of what dropout keeps
    const float* dprobabilities;
    const T* dcontext;
    const T* context;
    const T* probabilities;
    const std::uint8_t* mask;
    T* dscores;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const Row r = row_of(place, tile, row);
        const float minus = delta(place, r, dcontext, context, group);
        const std::int64_t at = row * tile.row, kept = r.saved * place.keys;
        for (std::int64_t k = group.thread(); k < tile.keys; k += group.threads()) {
            float value = 0;
            if (k < r.visible) {
                float through = dprobabilities[at + k];
                if (mask != nullptr) through = mask[kept + k] != 0 ? through * factor : 0.0F;
                value = load(probabilities[kept + k]) * (through - minus) * place.scale;
            }
            dscores[at + k] = store<T>(value);
        }
    }
};

template <class T>
struct StoredKey {
    AttentionPlace place;
    const float* dkeys;
    const float* dvalues;
    T* target;
    std::int64_t row, group;  ///< elements of the target from one to the next
    bool adds;

    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t d = place.head_dim, c = i % (2 * d), key = i / (2 * d) % place.keys;
        const std::int64_t g = i / (2 * d) / place.keys, from = (g * place.keys + key) * d;
        write(target[key * row + g * group + c], c < d ? dkeys[from + c] : dvalues[from + c - d], adds);
    }
};

template <class T>
struct ClearedKey {
    std::int64_t groups, width;
    T* target;
    std::int64_t row, group;

    __host__ __device__ void operator()(std::int64_t i) const {
        target[i / (width * groups) * row + i / width % groups * group + i % width] = store<T>(0.0F);
    }
};

}  // namespace

void gradient_rows(const AttentionPlace& place, const AttentionTile& tile, const AttentionDraws& draws, DType dtype,
                   const float* scores, const float* dprobabilities, const void* dcontext, const void* context,
                   const float* log_sum_exp, void* dropped, void* dscores, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const GradientRow<T> body{place,
                                  tile,
                                  draws,
                                  scores,
                                  dprobabilities,
                                  static_cast<const T*>(dcontext),
                                  static_cast<const T*>(context),
                                  log_sum_exp,
                                  static_cast<T*>(dropped),
                                  static_cast<T*>(dscores)};
        launch_rows(rows_of(place, tile), tile.keys, body, stream);
    });
}

void gradient_kept_rows(const AttentionPlace& place, const AttentionTile& tile, float dropout, DType dtype,
                        const float* dprobabilities, const void* dcontext, const void* context,
                        const KeptProbabilities& kept, void* dscores, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const GradientKeptRow<T> body{place,
                                      tile,
                                      1.0F / (1.0F - dropout),
                                      dprobabilities,
                                      static_cast<const T*>(dcontext),
                                      static_cast<const T*>(context),
                                      static_cast<const T*>(kept.probabilities),
                                      kept.mask,
                                      static_cast<T*>(dscores)};
        launch_rows(rows_of(place, tile), tile.keys, body, stream);
    });
}

void store_keys(const AttentionPlace& place, std::int64_t groups, DType dtype, const float* dkeys, const float* dvalues,
                const KeyGradients& target, bool adds, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const StoredKey<T> body{place, dkeys, dvalues, static_cast<T*>(target.data), target.row, target.group, adds};
        launch_elements(groups * place.keys * 2 * place.head_dim, body, stream);
    });
}

void clear_keys(const AttentionPlace& place, DType dtype, const KeyGradients& target, cudaStream_t stream) {
    with_type(dtype, [&](auto type) {
        using T = decltype(type);
        const std::int64_t width = 2 * place.head_dim;
        const ClearedKey<T> body{place.groups, width, static_cast<T*>(target.data), target.row, target.group};
        launch_elements(place.seq * place.groups * width, body, stream);
    });
}

}  // namespace lockstep::gpu
