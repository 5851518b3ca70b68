// Mean cross entropy of softmax(logits) against labels, and its gradient; also in parts where each rank of a group has
// some of the classes.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/fast_math.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
float maximum(const T* x, std::int64_t n) {
    float largest = load(x[0]);
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, load(x[i]));
    return largest;
}

template <class T>
float sum_of_exp(const T* x, std::int64_t n, float largest) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) sum += fast_exp(load(x[i]) - largest);
    return sum;
}

/// The classes [first, first + count) that are in these logits.
struct Classes {
    std::int64_t first = 0, count = 0;
    Classes(const Operand& logits, std::int64_t classes) : count(classes) {
        if (logits.runs.empty() || logits.runs.back().size() != 1 || logits.shape.back() != classes)
            throw LogicError(fmt::format("logits of shape {} do not hold one block of {} classes",
                                         to_string(logits.shape), classes));
        first = logits.runs.back()[0].global;
    }
    /// Place of a label among these classes; -1: another rank has it.
    std::int64_t place(std::int32_t label) const {
        const std::int64_t at = label - first;
        return at >= 0 && at < count ? at : -1;
    }
};

/// Adds the mean over the rows of each row's loss.
template <class F>
void add_loss(const step::SoftmaxLoss& op, const Output& loss, const Moment& moment, F&& loss_of_row) {
    double sum = 0;
    for (std::int64_t r = 0; r < op.rows; ++r) sum += loss_of_row(r);
    const auto mean = static_cast<float>(sum * op.gradient_scale);
    float& total = *pointer<float>(loss);
    total = adds(loss.access, moment) ? total + mean : mean;
}

template <class T>
std::unique_ptr<Kernel> make_whole(const step::SoftmaxLoss& op, const Operands& o) {
    if (o.in[0].shape.back() != o.in[0].global.back())
        throw LogicError("the loss of some of the classes needs its parts: row_max, row_sums and finish");
    floats(o.out[0]);
    return make_function_kernel([=, logits = pointer<T>(o.in[0]), labels = integers(o.in[1]), loss = o.out[0],
                                 lse = floats(o.out[1])](const Moment& moment) {
        const std::int64_t n = op.classes;
        parallel_rows(op.rows, n, [=](std::int64_t r) {
            const float largest = maximum(logits + r * n, n);
            lse[r] = largest + std::log(sum_of_exp(logits + r * n, n, largest));
        });
        add_loss(op, loss, moment, [=](std::int64_t r) { return lse[r] - load(logits[r * n + labels[r]]); });
    });
}

template <class T>
std::unique_ptr<Kernel> make_row_max(const step::SoftmaxLoss& op, const Operands& o) {
    return make_function_kernel(
        [logits = pointer<T>(o.in[0]), largest = floats(o.out[0]), rows = op.rows, n = op.classes](const Moment&) {
            parallel_rows(rows, n, [=](std::int64_t r) { largest[r] = maximum(logits + r * n, n); });
        });
}

template <class T>
std::unique_ptr<Kernel> make_row_sums(const step::SoftmaxLoss& op, const Operands& o) {
    return make_function_kernel([logits = pointer<T>(o.in[0]), labels = integers(o.in[1]), largest = floats(o.in[2]),
                                 here = Classes(o.in[0], op.classes), sums = floats(o.out[0]),
                                 rows = op.rows](const Moment&) {
        parallel_rows(rows, here.count, [=](std::int64_t r) {
            const T* x = logits + r * here.count;
            const std::int64_t label = here.place(labels[r]);
            sums[r] = sum_of_exp(x, here.count, largest[r]);
            sums[rows + r] = label >= 0 ? load(x[label]) - largest[r] : 0.0F;
        });
    });
}

std::unique_ptr<Kernel> make_finish(const step::SoftmaxLoss& op, const Operands& o) {
    floats(o.out[0]);
    return make_function_kernel([=, largest = floats(o.in[0]), sums = floats(o.in[1]), loss = o.out[0],
                                 lse = floats(o.out[1])](const Moment& moment) {
        for (std::int64_t r = 0; r < op.rows; ++r) lse[r] = std::log(sums[r]);
        add_loss(op, loss, moment, [=](std::int64_t r) { return lse[r] - sums[op.rows + r]; });
        for (std::int64_t r = 0; r < op.rows; ++r) lse[r] += largest[r];
    });
}

template <class T>
std::unique_ptr<Kernel> make_backward(const step::SoftmaxLoss& op, const Operands& o) {
    return make_function_kernel([logits = pointer<T>(o.in[0]), labels = integers(o.in[1]), lse = floats(o.in[2]),
                                 loss_scale = o.in.size() > 3 ? floats(o.in[3]) : nullptr,
                                 dlogits = pointer<T>(o.out[0]), here = Classes(o.in[0], op.classes), rows = op.rows,
                                 scale = static_cast<float>(op.gradient_scale)](const Moment&) {
        const float factor = scale * (loss_scale != nullptr ? *loss_scale : 1.0F);
        parallel_rows(rows, here.count, [=](std::int64_t r) {
            const T* x = logits + r * here.count;
            T* d = dlogits + r * here.count;
            const float sum = lse[r];
            const std::int64_t label = here.place(labels[r]);
            const float at_label = label >= 0 ? (fast_exp(load(x[label]) - sum) - 1.0F) * factor : 0.0F;
            for (std::int64_t i = 0; i < here.count; ++i) d[i] = store<T>(fast_exp(load(x[i]) - sum) * factor);
            if (label >= 0) d[label] = store<T>(at_label);
        });
    });
}

}  // namespace

std::unique_ptr<Kernel> make_softmax_loss(const step::SoftmaxLoss& op, const Operands& o) {
    using Part = step::SoftmaxLoss::Part;
    const bool is_forward = op.pass == step::Pass::forward;
    if (is_forward && op.part == Part::finish) {
        expect_slots(o, 2, 2, "softmax_loss finish");
        return make_finish(op, o);
    }
    const auto is_part = [&](Part part) { return is_forward && op.part == part; };
    if (is_part(Part::whole)) expect_slots(o, 2, 2, "softmax_loss");
    if (is_part(Part::row_max)) expect_slots(o, 1, 1, "softmax_loss row_max");
    if (is_part(Part::row_sums)) expect_slots(o, 3, 1, "softmax_loss row_sums");
    if (!is_forward) expect_slots(o, 3, 1, "softmax_loss backward");
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        if (!is_forward) return make_backward<T>(op, o);
        if (op.part == Part::row_max) return make_row_max<T>(op, o);
        if (op.part == Part::row_sums) return make_row_sums<T>(op, o);
        return make_whole<T>(op, o);
    });
}

}  // namespace lockstep::cpu
