// Sums over rows, for gradients of biases and position tables.
#include <fmt/format.h>

#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t chunk = 64;

template <class T, class S>
void sum_columns(const T* x, S* y, std::int64_t rows, std::int64_t columns, bool is_adding) {
    parallel_rows((columns + chunk - 1) / chunk, rows * chunk, [=](std::int64_t c) {
        const std::int64_t first = c * chunk, n = std::min(chunk, columns - first);
        float sums[chunk] = {};
        for (std::int64_t r = 0; r < rows; ++r) {
            const T* row = x + r * columns + first;
            for (std::int64_t i = 0; i < n; ++i) sums[i] += load(row[i]);
        }
        for (std::int64_t i = 0; i < n; ++i)
            y[first + i] = store<S>(is_adding ? load(y[first + i]) + sums[i] : sums[i]);
    });
}

/// `local[p]`: which of the local positions is p; -1: none.
template <class T, class S>
void sum_positions(const T* dy, S* table, const step::PositionSum& op, const std::int64_t* local, bool is_adding) {
    parallel_rows(op.positions, op.batch * op.width, [=, batch = op.batch, width = op.width](std::int64_t p) {
        S* const to = table + p * width;
        if (!is_adding)
            for (std::int64_t i = 0; i < width; ++i) to[i] = S{};
        if (local[p] < 0) return;
        const T* const rows = dy + local[p] * batch * width;
        for (std::int64_t first = 0; first < width; first += chunk) {
            const std::int64_t n = std::min(chunk, width - first);
            float sums[chunk] = {};
            for (std::int64_t b = 0; b < batch; ++b)
                for (std::int64_t i = 0; i < n; ++i) sums[i] += load(rows[b * width + first + i]);
            for (std::int64_t i = 0; i < n; ++i) to[first + i] = store<S>(load(to[first + i]) + sums[i]);
        }
    });
}

}  // namespace

std::unique_ptr<Kernel> make_column_sum(const step::ColumnSum& op, const Operands& o) {
    expect_slots(o, 1, 1, "column_sum");
    return with_type(o.in[0].dtype, [&](auto type) {
        return with_type(o.out[0].dtype, [&](auto sum_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using S = decltype(sum_type);
            return make_function_kernel([x = pointer<T>(o.in[0]), y = pointer<S>(o.out[0]), op,
                                         access = o.out[0].access](const Moment& moment) {
                sum_columns(x, y, op.rows, op.columns, adds(access, moment));
            });
        });
    });
}

std::unique_ptr<Kernel> make_position_sum(const step::PositionSum& op, const Operands& o) {
    expect_slots(o, 1, 1, "position_sum");
    std::vector<std::int64_t> local(static_cast<std::size_t>(op.positions), -1);
    const std::vector<std::int64_t> positions = step::positions_of_rows(o.in[0], op.seq * op.batch, op.batch);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] >= op.positions)
            throw LogicError(fmt::format("position {} in a table of {} positions", positions[i], op.positions));
        local[static_cast<std::size_t>(positions[i])] = static_cast<std::int64_t>(i);
    }
    return with_type(o.in[0].dtype, [&](auto type) {
        return with_type(o.out[0].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using S = decltype(table_type);
            return make_function_kernel([dy = pointer<T>(o.in[0]), table = pointer<S>(o.out[0]), op,
                                         access = o.out[0].access, local = std::move(local)](const Moment& moment) {
                sum_positions(dy, table, op, local.data(), adds(access, moment));
            });
        });
    });
}

}  // namespace lockstep::cpu
