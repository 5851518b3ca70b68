// Tokens to the rows of experts and back, weighted by the router's softmax.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
void gather_rows(const step::Dispatch& op, const T* x, const std::int32_t* row_tokens, T* y) {
    const auto bytes = static_cast<std::size_t>(op.width) * sizeof(T);
    parallel_rows(op.rows, op.width, [=, width = op.width, top_k = op.top_k](std::int64_t row) {
        const std::int64_t choice = row_tokens[row];
        if (choice >= 0)
            std::memcpy(y + row * width, x + choice / top_k * width, bytes);
        else
            std::memset(static_cast<void*>(y + row * width), 0, bytes);
    });
}

/// In the order of the choices, summed in fp32.
template <class T>
void add_rows(const step::Dispatch& op, const T* dy, const std::int32_t* token_rows, T* dx) {
    const auto factor = static_cast<float>(op.factor);
    parallel_rows(op.tokens, op.width * op.top_k, [=, width = op.width, top_k = op.top_k](std::int64_t token) {
        for (std::int64_t i = 0; i < width; ++i) {
            float sum = 0;
            for (std::int64_t j = 0; j < top_k; ++j) {
                const std::int64_t row = token_rows[token * top_k + j];
                if (row >= 0) sum += load(dy[row * width + i]);
            }
            dx[token * width + i] = store<T>(factor * sum);
        }
    });
}

/// The softmax of one token's logits: its largest logit and the inverse of the sum.
struct Softmax {
    float largest, inverse_sum;
    template <class T>
    Softmax(const T* logits, std::int64_t experts) : largest(load(logits[0])) {
        for (std::int64_t e = 1; e < experts; ++e) largest = std::max(largest, load(logits[e]));
        float sum = 0;
        for (std::int64_t e = 0; e < experts; ++e) sum += std::exp(load(logits[e]) - largest);
        inverse_sum = 1 / sum;
    }
    float operator()(float logit) const { return std::exp(logit - largest) * inverse_sum; }
};

template <class T>
struct Combined {
    step::Combine op;
    const T *x, *logits;
    const std::int32_t *token_rows, *row_tokens;

    float weight(const Softmax& softmax, std::int64_t token, std::int64_t row) const {
        return softmax(load(logits[token * op.experts + row / op.rows_per_expert]));
    }
    void forward(std::int64_t token, T* y) const {
        const Softmax softmax(logits + token * op.experts, op.experts);
        T* to = y + token * op.width;
        for (std::int64_t i = 0; i < op.width; ++i) to[i] = T{};
        for (std::int64_t j = 0; j < op.top_k; ++j) {
            const std::int64_t row = token_rows[token * op.top_k + j];
            if (row < 0) continue;
            const float p = weight(softmax, token, row);
            const T* from = x + row * op.width;
            for (std::int64_t i = 0; i < op.width; ++i) to[i] = store<T>(load(to[i]) + p * load(from[i]));
        }
    }
    void backward_row(std::int64_t row, const T* dy, T* dx) const {
        T* to = dx + row * op.width;
        const std::int64_t choice = row_tokens[row];
        const std::int64_t token = choice / op.top_k;
        const float p = choice < 0 ? 0.0F
                                   : static_cast<float>(op.factor) *
                                         weight(Softmax(logits + token * op.experts, op.experts), token, row);
        const T* from = dy + (choice < 0 ? 0 : token) * op.width;
        for (std::int64_t i = 0; i < op.width; ++i) to[i] = choice < 0 ? T{} : store<T>(p * load(from[i]));
    }
    /// dlogit_e = p_e (dp_e - sum over f of p_f dp_f), dp_e = dy . row of the expert, 0 for those that have none.
    void backward_logits(std::int64_t token, const T* dy, T* dlogits) const {
        const Softmax softmax(logits + token * op.experts, op.experts);
        const T* given = dy + token * op.width;
        T* to = dlogits + token * op.experts;
        float mean = 0;
        for (const bool is_second : {false, true}) {
            if (is_second)
                for (std::int64_t e = 0; e < op.experts; ++e)
                    to[e] = store<T>(-softmax(load(logits[token * op.experts + e])) * mean);
            for (std::int64_t j = 0; j < op.top_k; ++j) {
                const std::int64_t row = token_rows[token * op.top_k + j];
                if (row < 0) continue;
                const float p = weight(softmax, token, row), dp = dot(given, x + row * op.width);
                T& mine = to[row / op.rows_per_expert];
                if (is_second)
                    mine = store<T>(p * (dp - mean));
                else
                    mean += p * dp;
            }
        }
    }
    float dot(const T* a, const T* b) const {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < op.width; ++i) sum += load(a[i]) * load(b[i]);
        return sum;
    }
};

void expect_overwrite(const Operands& o, const char* kernel) {
    for (const Output& out : o.out)
        if (out.access != step::Access::overwrite) throw LogicError(std::string(kernel) + " can't add to its results");
}

}  // namespace

std::unique_ptr<Kernel> make_dispatch(const step::Dispatch& op, const Operands& o) {
    expect_slots(o, 2, 1, "dispatch");
    expect_overwrite(o, "dispatch");
    const std::int32_t* places = integers(o.in[1]);
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        const T* from = pointer<T>(o.in[0]);
        T* to = pointer<T>(o.out[0]);
        return make_function_kernel([=](const Moment&) {
            if (op.pass == step::Pass::forward)
                gather_rows(op, from, places, to);
            else
                add_rows(op, from, places, to);
        });
    });
}

std::unique_ptr<Kernel> make_combine(const step::Combine& op, const Operands& o) {
    const bool is_forward = op.pass == step::Pass::forward;
    expect_slots(o, is_forward ? 3 : 5, is_forward ? 1 : 2, "combine");
    expect_overwrite(o, "combine");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        if (is_forward) {
            const Combined<T> all{op, pointer<T>(o.in[0]), pointer<T>(o.in[1]), integers(o.in[2]), nullptr};
            return make_function_kernel([all, y = pointer<T>(o.out[0])](const Moment&) {
                parallel_rows(all.op.tokens, all.op.width * all.op.top_k,
                              [=](std::int64_t token) { all.forward(token, y); });
            });
        }
        const Combined<T> all{op, pointer<T>(o.in[1]), pointer<T>(o.in[2]), integers(o.in[3]), integers(o.in[4])};
        return make_function_kernel(
            [all, dy = pointer<T>(o.in[0]), dx = pointer<T>(o.out[0]), dlogits = pointer<T>(o.out[1])](const Moment&) {
                parallel_rows(all.op.experts * all.op.rows_per_expert, all.op.width,
                              [=](std::int64_t row) { all.backward_row(row, dy, dx); });
                parallel_rows(all.op.tokens, all.op.width * all.op.top_k,
                              [=](std::int64_t token) { all.backward_logits(token, dy, dlogits); });
            });
    });
}

}  // namespace lockstep::cpu
