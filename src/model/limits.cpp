#include "model/limits.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::model {

std::int64_t checked_product(std::initializer_list<std::int64_t> factors) {
    std::int64_t product = 1;
    for (auto factor : factors)
        if (__builtin_mul_overflow(product, factor, &product))
            throw InputError(fmt::format("too big ({} leaves 64 bits); use smaller sizes or a smaller batch",
                                         fmt::join(factors, " x ")));
    return product;
}

std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum))
        throw InputError(fmt::format("too big ({} + {} leaves 64 bits); use smaller sizes or a smaller batch", a, b));
    return sum;
}

std::int64_t checked_elements(const Shape& shape) {
    std::int64_t n = 1;
    for (auto extent : shape.extents)
        if (__builtin_mul_overflow(n, extent, &n) || n > max_elements)
            throw InputError(fmt::format("too big (a tensor of {} has more than 1e15 elements); use smaller sizes",
                                         to_string(shape)));
    return n;
}

}  // namespace lockstep::model
