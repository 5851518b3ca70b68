// Look-up of table rows by id and the dense gradient of the table; the first token of each sequence.
#include <fmt/format.h>

#include <cstring>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

/// The rows of a table that are here: ids [first, first + rows).
struct TableRows {
    std::int64_t first = 0, rows = 0, hidden = 0;
    explicit TableRows(const Operand& table) {
        if (table.shape.rank() != 2 || table.runs.size() != 2 || table.runs[0].size() != 1 ||
            table.shape[1] != table.global[1])
            throw LogicError(fmt::format("an embedding table of shape {} must be split into blocks of rows, if at all",
                                         to_string(table.shape)));
        first = table.runs[0][0].global;
        rows = table.shape[0];
        hidden = table.shape[1];
    }
    /// Place of an id among these rows; -1: another rank has it.
    std::int64_t row_of(std::int32_t id) const {
        const std::int64_t row = id - first;
        return row >= 0 && row < rows ? row : -1;
    }
};

template <class T>
void look_up(const std::int32_t* ids, const T* table, const TableRows here, T* y, std::int64_t tokens) {
    const std::int64_t hidden = here.hidden;
    const auto bytes = static_cast<std::size_t>(hidden) * sizeof(T);
    parallel_rows(tokens, hidden, [=](std::int64_t t) {
        const std::int64_t row = here.row_of(ids[t]);
        if (row >= 0)
            std::memcpy(y + t * hidden, table + row * hidden, bytes);
        else
            std::memset(static_cast<void*>(y + t * hidden), 0, bytes);
    });
}

/// Threads own columns, so that equal ids add in the order of tokens whatever the number of threads.
template <class T, class G>
void scatter_add(const T* dy, const std::int32_t* ids, G* table, const TableRows here, std::int64_t tokens) {
    constexpr std::int64_t chunk = 128;
    const std::int64_t hidden = here.hidden;
    parallel_rows((hidden + chunk - 1) / chunk, tokens * chunk, [=](std::int64_t c) {
        const std::int64_t first = c * chunk, last = std::min(first + chunk, hidden);
        for (std::int64_t t = 0; t < tokens; ++t) {
            const std::int64_t at = here.row_of(ids[t]);
            if (at < 0) continue;
            G* row = table + at * hidden;
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
                                         here = TableRows(o.in[1]),
                                         tokens = op.tokens](const Moment&) { look_up(ids, table, here, y, tokens); });
        });
    }
    return with_type(o.in[0].dtype, [&](auto type) {
        return with_type(o.out[0].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using G = decltype(table_type);
            return make_function_kernel([dy = pointer<T>(o.in[0]), ids = integers(o.in[1]),
                                         table = pointer<G>(o.out[0]), here = TableRows(o.out[0]), tokens = op.tokens,
                                         access = o.out[0].access](const Moment& moment) {
                if (!adds(access, moment)) set_zero(table, here.rows * here.hidden);
                scatter_add(dy, ids, table, here, tokens);
            });
        });
    });
}

std::unique_ptr<Kernel> make_first_token(const step::FirstToken& op, const Operands& o) {
    expect_slots(o, 1, 1, "first_token");
    const bool is_forward = op.pass == step::Pass::forward;
    if (!is_forward && o.out[0].access != step::Access::overwrite)
        throw LogicError("first_token can't add to an activation gradient");
    const Operand& sequence = is_forward ? o.in[0] : o.out[0];
    if (sequence.runs.empty() || sequence.runs[0].empty() || sequence.runs[0][0].global != 0)
        throw LogicError("first_token of a part of the sequences that begins later");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        using T = decltype(type);
        return make_function_kernel([=, from = pointer<T>(o.in[0]), to = pointer<T>(o.out[0])](const Moment&) {
            const std::int64_t first = op.batch * op.width;
            std::memcpy(to, from, static_cast<std::size_t>(first) * sizeof(T));
            if (!is_forward) set_zero(to + first, (op.seq - 1) * first);
        });
    });
}

}  // namespace lockstep::cpu
