// Look-up of table rows by id and the dense gradient of the table; the first token of each sequence.
#include <cstring>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
void look_up(const std::int32_t* ids, const T* table, T* y, std::int64_t tokens, std::int64_t hidden) {
    parallel_rows(tokens, hidden, [=](std::int64_t t) {
        std::memcpy(y + t * hidden, table + ids[t] * hidden, static_cast<std::size_t>(hidden) * sizeof(T));
    });
}

/// Threads own columns, so that equal ids add in the order of tokens whatever the number of threads.
template <class T, class G>
void scatter_add(const T* dy, const std::int32_t* ids, G* table, std::int64_t tokens, std::int64_t hidden) {
    constexpr std::int64_t chunk = 128;
    parallel_rows((hidden + chunk - 1) / chunk, tokens * chunk, [=](std::int64_t c) {
        const std::int64_t first = c * chunk, last = std::min(first + chunk, hidden);
        for (std::int64_t t = 0; t < tokens; ++t) {
            G* row = table + ids[t] * hidden;
            const T* from = dy + t * hidden;
#pragma omp simd
            for (std::int64_t i = first; i < last; ++i) row[i] = store<G>(load(row[i]) + load(from[i]));
        }
    });
}

template <class T>
void set_zero(T* y, std::int64_t n) {
    parallel_for(n, element_grain, [=](std::int64_t i) { y[i] = T{}; });
}

}  // namespace

std::unique_ptr<Kernel> make_embedding(const step::Embedding& op, const Operands& o) {
    expect_slots(o, 2, 1, "embedding");
    if (op.pass == step::Pass::forward) {
        return with_type(o.in[1].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            if (o.out[0].dtype != o.in[1].dtype) throw LogicError("an embedding must have the dtype of its table");
            return make_function_kernel([ids = integers(o.in[0]), table = pointer<T>(o.in[1]), y = pointer<T>(o.out[0]),
                                         op](const Moment&) { look_up(ids, table, y, op.tokens, op.hidden); });
        });
    }
    return with_type(o.in[0].dtype, [&](auto type) {
        return with_type(o.out[0].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using G = decltype(table_type);
            return make_function_kernel([dy = pointer<T>(o.in[0]), ids = integers(o.in[1]),
                                         table = pointer<G>(o.out[0]), op,
                                         access = o.out[0].access](const Moment& moment) {
                if (!adds(access, moment)) set_zero(table, op.vocab * op.hidden);
                scatter_add(dy, ids, table, op.tokens, op.hidden);
            });
        });
    });
}

std::unique_ptr<Kernel> make_first_token(const step::FirstToken& op, const Operands& o) {
    expect_slots(o, 1, 1, "first_token");
    if (op.pass != step::Pass::forward && o.out[0].access != step::Access::overwrite)
        throw LogicError("first_token can't add to an activation gradient");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel([from = pointer<T>(o.in[0]), to = pointer<T>(o.out[0]), op](const Moment&) {
            const auto bytes = static_cast<std::size_t>(op.width) * sizeof(T);
            const bool is_forward = op.pass == step::Pass::forward;
            if (!is_forward) set_zero(to, op.batch * op.seq * op.width);
            for (std::int64_t b = 0; b < op.batch; ++b) {
                const std::int64_t token = b * op.seq * op.width, row = b * op.width;
                std::memcpy(to + (is_forward ? row : token), from + (is_forward ? token : row), bytes);
            }
        });
    });
}

}  // namespace lockstep::cpu
