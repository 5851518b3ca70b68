// Dropout whose draws depend on the seed, the step and the place of an element in the global tensor alone.
#include "base/random.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

/// Row-major index in this rank's part of the element stored at `i`.
struct RowMajorIndex {
    Order order;
    std::int64_t channels = 1, pixels = 1;
    explicit RowMajorIndex(const Operand& o) : order(o.shape.rank() == 4 ? o.order : Order::row_major) {
        if (o.shape.rank() != 4) return;
        channels = o.shape[1];
        pixels = o.shape[2] * o.shape[3];
    }
    std::int64_t operator()(std::int64_t i) const {
        const std::int64_t image = i / (channels * pixels), rest = i % (channels * pixels);
        std::int64_t channel = rest % channels, pixel = rest / channels;
        if (order == Order::blocked8) {
            channel = rest / (8 * pixels) * 8 + rest % 8;
            pixel = rest % (8 * pixels) / 8;
        }
        return (image * channels + channel) * pixels + pixel;
    }
};

struct Draw {
    std::uint64_t seed;
    float probability;
    std::uint64_t stream, first;
    bool keeps(std::int64_t index) const {
        return random_uniform(seed, stream, first + static_cast<std::uint64_t>(index)) >= probability;
    }
};

template <class T>
struct Buffers {
    const T* x;
    T* y;
    std::uint8_t* mask;
};

template <class T>
void drop(const Buffers<T>& to, std::int64_t n, const Draw& draw, const RowMajorIndex& index,
          const step::GlobalPlace& place) {
    const float factor = 1.0F / (1.0F - draw.probability);
    const auto element = [=](std::int64_t i, std::int64_t counter) {
        const bool keep = draw.keeps(counter);
        to.mask[i] = keep ? 1 : 0;
        to.y[i] = store<T>(keep ? load(to.x[i]) * factor : 0.0F);
    };
    constexpr std::int64_t grain = element_grain / 8;
    if (index.order != Order::row_major)
        return parallel_for(n, grain, [=, &place](std::int64_t i) { element(i, place(index(i))); });
    parallel_slices(n, grain, [&](std::int64_t begin, std::int64_t end) {
        place.for_stretches(begin, end, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
            for_range(local, local + count, [=](std::int64_t i) { element(i, global + i - local); });
        });
    });
}

template <class T>
void drop_backward(const T* dy, const std::uint8_t* mask, T* dx, std::int64_t n, float factor) {
    parallel_for(n, element_grain,
                 [=](std::int64_t i) { dx[i] = store<T>(mask[i] != 0 ? load(dy[i]) * factor : 0.0F); });
}

}  // namespace

std::unique_ptr<Kernel> make_dropout(const step::Dropout& op, const Operands& o, const KernelSetup& setup) {
    const bool is_forward = op.pass == step::Pass::forward;
    expect_slots(o, is_forward ? 1 : 2, is_forward ? 2 : 1, "dropout");
    const auto probability = static_cast<float>(op.probability);
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        const T* from = pointer<T>(o.in[0]);
        T* to = pointer<T>(o.out[0]);
        if (!is_forward)
            return make_function_kernel([=, n = op.count, mask = pointer<std::uint8_t>(o.in[1])](const Moment&) {
                drop_backward(from, mask, to, n, 1.0F / (1.0F - probability));
            });
        const RowMajorIndex index(o.out[0]);
        return make_function_kernel([=, n = op.count, stream = op.stream, seed = setup.seed,
                                     place = step::GlobalPlace(o.out[0]),
                                     mask = pointer<std::uint8_t>(o.out[1])](const Moment& moment) {
            const Draw draw{seed, probability, stream + static_cast<std::uint64_t>(moment.step),
                            static_cast<std::uint64_t>(moment.micro_batch * place.elements())};
            drop(Buffers<T>{from, to, mask}, n, draw, index, place);
        });
    });
}

}  // namespace lockstep::cpu
