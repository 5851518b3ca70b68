// Layer norm and RMS norm (Zhang and Sennrich 2019): per row over the features.
#include <cmath>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

/// Slots by name, for both kinds: an RMS norm has no mean and no shift.
struct Slots {
    bool has_mean;
    explicit Slots(const step::Norm& norm) : has_mean(norm.kind == model::Norm::Kind::layer) {}
    std::size_t inverse_out() const { return has_mean ? 2 : 1; }
    std::size_t inverse_in() const { return has_mean ? 4 : 3; }
};

struct Row {
    float mean = 0, inverse = 0;
};

template <class T>
Row statistics(const T* x, std::int64_t n, float epsilon, bool has_mean) {
    float sum = 0;
    if (has_mean) {
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < n; ++i) sum += load(x[i]);
    }
    const float mean = sum / static_cast<float>(n);
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < n; ++i) {
        const float d = load(x[i]) - mean;
        squares += d * d;
    }
    return {mean, 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon)};
}

template <class T, class P>
std::unique_ptr<Kernel> make_forward(const step::Norm& norm, const Operands& o) {
    const Slots slots(norm);
    const bool has_mean = slots.has_mean, has_shift = o.in.size() > 2;
    const std::int64_t n = norm.features, rows = norm.rows;
    const auto epsilon = static_cast<float>(norm.epsilon);
    const T* x = pointer<T>(o.in[0]);
    const P* scale = pointer<P>(o.in[1]);
    const P* shift = has_shift ? pointer<P>(o.in[2]) : nullptr;
    T* y = pointer<T>(o.out[0]);
    float* means = has_mean ? floats(o.out[1]) : nullptr;
    float* inverses = floats(o.out[slots.inverse_out()]);
    return make_function_kernel([=](const Moment&) {
        parallel_rows(rows, n, [=](std::int64_t r) {
            const T* from = x + r * n;
            T* to = y + r * n;
            const Row row = statistics(from, n, epsilon, has_mean);
            if (has_mean) means[r] = row.mean;
            inverses[r] = row.inverse;
            for (std::int64_t i = 0; i < n; ++i) {
                const float normal = (load(from[i]) - row.mean) * row.inverse * load(scale[i]);
                to[i] = store<T>(has_shift ? normal + load(shift[i]) : normal);
            }
        });
    });
}

/// dx = inverse (g - mean(g) - normal mean(g normal)), g = dy scale; an RMS norm has no mean(g) term.
template <class T, class P>
void backward_rows(const step::Norm& norm, const Operands& o, bool adds_to_dx) {
    const Slots slots(norm);
    const bool has_mean = slots.has_mean;
    const std::int64_t n = norm.features;
    const T* dy = pointer<T>(o.in[0]);
    const T* x = pointer<T>(o.in[1]);
    const P* scale = pointer<P>(o.in[2]);
    const float* means = has_mean ? floats(o.in[3]) : nullptr;
    const float* inverses = floats(o.in[slots.inverse_in()]);
    T* dx = pointer<T>(o.out[0]);
    parallel_rows(norm.rows, n, [=](std::int64_t r) {
        const T* gradient = dy + r * n;
        const T* value = x + r * n;
        const float mean = has_mean ? means[r] : 0.0F, inverse = inverses[r];
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (std::int64_t i = 0; i < n; ++i) {
            const float g = load(gradient[i]) * load(scale[i]);
            sum += g;
            product += g * (load(value[i]) - mean) * inverse;
        }
        const float mean_g = has_mean ? sum / static_cast<float>(n) : 0.0F;
        const float mean_product = product / static_cast<float>(n);
        T* to = dx + r * n;
        for (std::int64_t i = 0; i < n; ++i) {
            const float normal = (load(value[i]) - mean) * inverse;
            const float d = inverse * (load(gradient[i]) * load(scale[i]) - mean_g - normal * mean_product);
            to[i] = store<T>(adds_to_dx ? load(to[i]) + d : d);
        }
    });
}

/// dscale = sum over rows of dy normal, dshift = sum of dy, into fp32 sums of a column range.
template <class T>
void backward_columns(const step::Norm& norm, const Operands& o, float* dscale, float* dshift) {
    constexpr std::int64_t chunk = 64;
    const Slots slots(norm);
    const bool has_mean = slots.has_mean;
    const std::int64_t n = norm.features, rows = norm.rows;
    const T* dy = pointer<T>(o.in[0]);
    const T* x = pointer<T>(o.in[1]);
    const float* means = has_mean ? floats(o.in[3]) : nullptr;
    const float* inverses = floats(o.in[slots.inverse_in()]);
    parallel_rows((n + chunk - 1) / chunk, rows * chunk, [=](std::int64_t c) {
        const std::int64_t first = c * chunk, last = std::min(first + chunk, n);
        for (std::int64_t i = first; i < last; ++i) dscale[i] = dshift[i] = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const float mean = has_mean ? means[r] : 0.0F, inverse = inverses[r];
#pragma omp simd
            for (std::int64_t i = first; i < last; ++i) {
                const float g = load(dy[r * n + i]);
                dscale[i] += g * (load(x[r * n + i]) - mean) * inverse;
                dshift[i] += g;
            }
        }
    });
}

template <class P>
void write_sums(const Output& out, const float* sums, std::int64_t n, const Moment& moment) {
    P* to = pointer<P>(out);
    const bool add = adds(out.access, moment);
    for (std::int64_t i = 0; i < n; ++i) to[i] = store<P>(add ? load(to[i]) + sums[i] : sums[i]);
}

template <class T, class P>
std::unique_ptr<Kernel> make_backward(const step::Norm& norm, const Operands& o) {
    std::vector<float> sums(static_cast<std::size_t>(2 * norm.features));
    return make_function_kernel([norm, o, sums = std::move(sums)](const Moment& moment) mutable {
        float* dscale = sums.data();
        float* dshift = dscale + norm.features;
        backward_rows<T, P>(norm, o, adds(o.out[0].access, moment));
        backward_columns<T>(norm, o, dscale, dshift);
        const auto write = [&](const Output& out, const float* from) {
            with_type(out.dtype, [&](auto type) { write_sums<decltype(type)>(out, from, norm.features, moment); });
        };
        write(o.out[1], dscale);
        if (o.out.size() > 2) write(o.out[2], dshift);
    });
}

}  // namespace

std::unique_ptr<Kernel> make_row_norm(const step::Norm& norm, const Operands& o) {
    const Slots slots(norm);
    const bool is_forward = norm.pass == step::Pass::forward;
    if (is_forward)
        expect_slots(o, 2, slots.inverse_out() + 1, "norm");
    else
        expect_slots(o, slots.inverse_in() + 1, 2, "norm backward");
    return with_type(o.in[is_forward ? 0 : 1].dtype, [&](auto value) {
        return with_type(o.in[is_forward ? 1 : 2].dtype, [&](auto parameter) {
            using T = decltype(value);
            using P = decltype(parameter);
            return is_forward ? make_forward<T, P>(norm, o) : make_backward<T, P>(norm, o);
        });
    });
}

}  // namespace lockstep::cpu
