// Mean cross entropy of softmax(logits) against labels, and its gradient.
#include <cmath>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/fast_math.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

/// log(sum(exp(x))), about the largest element.
template <class T>
float log_sum_exp(const T* x, std::int64_t n) {
    float largest = load(x[0]);
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, load(x[i]));
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += fast_exp(load(x[i]) - largest);
    return largest + std::log(sum);
}

template <class T>
std::unique_ptr<Kernel> make_forward(const step::SoftmaxLoss& op, const Operands& o) {
    const T* logits = pointer<T>(o.in[0]);
    const std::int32_t* labels = integers(o.in[1]);
    float* loss = floats(o.out[0]);
    float* lse = floats(o.out[1]);
    const step::Access access = o.out[0].access;
    return make_function_kernel([=](const Moment& moment) {
        const std::int64_t n = op.classes;
        parallel_rows(op.rows, n, [=](std::int64_t r) { lse[r] = log_sum_exp(logits + r * n, n); });
        double sum = 0;
        for (std::int64_t r = 0; r < op.rows; ++r) sum += lse[r] - load(logits[r * n + labels[r]]);
        const auto mean = static_cast<float>(sum * op.gradient_scale);
        *loss = adds(access, moment) ? *loss + mean : mean;
    });
}

template <class T>
std::unique_ptr<Kernel> make_backward(const step::SoftmaxLoss& op, const Operands& o) {
    const T* logits = pointer<T>(o.in[0]);
    const std::int32_t* labels = integers(o.in[1]);
    const float* lse = floats(o.in[2]);
    const float* loss_scale = o.in.size() > 3 ? floats(o.in[3]) : nullptr;
    T* dlogits = pointer<T>(o.out[0]);
    return make_function_kernel([=](const Moment&) {
        const std::int64_t n = op.classes;
        const float factor = static_cast<float>(op.gradient_scale) * (loss_scale != nullptr ? *loss_scale : 1.0F);
        parallel_rows(op.rows, n, [=](std::int64_t r) {
            const T* x = logits + r * n;
            T* d = dlogits + r * n;
            const float sum = lse[r];
            const std::int32_t label = labels[r];
            const float at_label = (fast_exp(load(x[label]) - sum) - 1.0F) * factor;
            for (std::int64_t i = 0; i < n; ++i) d[i] = store<T>(fast_exp(load(x[i]) - sum) * factor);
            d[label] = store<T>(at_label);
        });
    });
}

}  // namespace

std::unique_ptr<Kernel> make_softmax_loss(const step::SoftmaxLoss& op, const Operands& o) {
    const bool is_forward = op.pass == step::Pass::forward;
    expect_slots(o, is_forward ? 2 : 3, is_forward ? 2 : 1, "softmax_loss");
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        return is_forward ? make_forward<T>(op, o) : make_backward<T>(op, o);
    });
}

}  // namespace lockstep::cpu
