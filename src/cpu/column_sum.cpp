// Sums over rows, for gradients of biases and position tables.
#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

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

}  // namespace lockstep::cpu
