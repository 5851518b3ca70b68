// Rotary position embedding (Su et al. 2021) in the half-split form of Llama: element i of a head turns with element
// i + head_dim / 2 by the angle position theta^(-2 i / head_dim). A row holds, for each group of heads, its queries,
// its key and its value; values stay.
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"
#include "gpu/place.cuh"

namespace lockstep::gpu {
namespace {

constexpr int most_half = 128;  // half of a head's elements

/// Turns per position: theta^(-2 i / head_dim) / (2 pi). In double, and reduced to a part of one turn, so that the
/// angle is exact to a float's precision however far the position.
struct Frequencies {
    double at[most_half];
};

template <class T>
struct Rotate {
    static constexpr int N = pack_of<T>;
    const T* x;
    T* y;
    std::int64_t batch;
    int half, heads, group_heads;  ///< group_heads: of a group, its value as the last
    float direction;
    bool has_packs, add;
    DeviceRuns positions;
    Frequencies frequencies;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const std::int64_t first = row * heads * 2 * half, position = positions.global(row / batch);
        if (has_packs)
            turn_row<N>(first, position, group);
        else
            turn_row<1>(first, position, group);
    }
    /// A thread keeps its sines and cosines while it goes through the heads.
    template <int M, class Group>
    __host__ __device__ void turn_row(std::int64_t first, std::int64_t position, const Group& group) const {
        const int packs = half / M, lanes = group.threads() > packs ? group.threads() / packs : 1;
        const int lane = lanes > 1 ? group.thread() / packs : 0;
        if (lane >= lanes) return;
        for (int p = group.thread() - lane * packs; p < packs; p += group.threads()) {
            Pack<float, M> cosines{}, sines{};
            for (int k = 0; k < M; ++k) {
                const double turns = static_cast<double>(position) * frequencies.at[p * M + k];
                sincospif(static_cast<float>(2 * (turns - floor(turns))), &sines.at[k], &cosines.at[k]);
                sines.at[k] *= direction;
            }
            for (int head = lane; head < heads; head += lanes) {
                const std::int64_t at = first + static_cast<std::int64_t>(head) * 2 * half + p * M;
                Pack<float, M> a = load_pack<M>(x, at), b = load_pack<M>(x, at + half);
                const bool is_value = head % group_heads == group_heads - 1;
                for (int k = 0; k < M && !is_value; ++k) {
                    const float turned = a.at[k] * cosines.at[k] - b.at[k] * sines.at[k];
                    b.at[k] = a.at[k] * sines.at[k] + b.at[k] * cosines.at[k];
                    a.at[k] = turned;
                }
                store_pack(y, at, a, add);
                store_pack(y, at + half, b, add);
            }
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_rotary(const step::Elementwise& op, const Operands& o) {
    expect_slots(o, 1, 1, "rotary");
    const std::int64_t half = op.rotary.head_dim / 2, groups = op.rotary.kv_heads;
    const std::int64_t group_heads = groups > 0 ? op.rotary.heads / groups + 2 : 0;  // queries, key, value
    const std::int64_t rows = op.count / op.width;
    if (op.width != groups * group_heads * 2 * half)
        throw LogicError("rows of " + std::to_string(op.width) + " elements do not hold " + std::to_string(groups) +
                         " groups of " + std::to_string(group_heads) + " heads of " + std::to_string(2 * half) +
                         " elements");
    if (half > most_half)
        throw RuntimeError("rotary embedding of heads of " + std::to_string(2 * half) +
                           " elements (GPU kernels turn up to " + std::to_string(2 * most_half) +
                           "); use smaller heads, or --backend cpu");
    step::positions_of_rows(o.in[0], rows, op.batch);  // checks
    Frequencies frequencies{};
    for (std::int64_t i = 0; i < half; ++i)
        frequencies.at[i] =
            std::pow(op.rotary.theta, -static_cast<double>(i) / static_cast<double>(half)) / (2 * std::numbers::pi);
    return with_type(o.out[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        constexpr int N = Rotate<T>::N;
        Rotate<T> body{pointer<T>(o.in[0]),
                       pointer<T>(o.out[0]),
                       op.batch,
                       static_cast<int>(half),
                       static_cast<int>(groups * group_heads),
                       static_cast<int>(group_heads),
                       op.kind == step::Elementwise::Kind::rotary ? 1.0F : -1.0F,  // the inverse is the transpose
                       false,
                       false,
                       DeviceRuns(o.in[0].runs[0]),
                       frequencies};
        body.has_packs = half % N == 0 && elements_before_packs<N>(body.x, body.y) == 0;
        return make_function_kernel([body, rows, work = op.width / 2 / N, access = o.out[0].access](
                                        const Moment& moment, cudaStream_t stream) mutable {
            body.add = adds(access, moment);
            launch_rows(rows, work, body, stream);
        });
    });
}

}  // namespace lockstep::gpu
