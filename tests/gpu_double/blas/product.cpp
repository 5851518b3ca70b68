#include "gpu_double/blas/product.hpp"

#include <algorithm>

namespace lockstep::gpu_double {

std::vector<float> gather(const void* data, Element element, std::int64_t rows, std::int64_t columns, std::int64_t ld,
                          bool is_transposed) {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t i = 0; i < rows; ++i)
            values[static_cast<std::size_t>(j * rows + i)] =
                load(data, element, is_transposed ? i * ld + j : j * ld + i);
    return values;
}

// Four columns at a time: each column of `a` that is read serves four of the result. Blocks of rows stay in the cache.
std::vector<float> multiply(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m, std::int64_t n,
                            std::int64_t k) {
    constexpr std::int64_t columns = 4, rows = 512;
    std::vector<float> result(static_cast<std::size_t>(m * n));
    for (std::int64_t i0 = 0; i0 < m; i0 += rows) {
        const std::int64_t height = std::min(rows, m - i0);
        for (std::int64_t j0 = 0; j0 < n; j0 += columns) {
            const std::int64_t width = std::min(columns, n - j0);
            float sums[columns][rows] = {};
            for (std::int64_t p = 0; p < k; ++p) {
                const float* from = a.data() + p * m + i0;
                float factors[columns] = {};
                for (std::int64_t j = 0; j < width; ++j) factors[j] = b[static_cast<std::size_t>((j0 + j) * k + p)];
                for (std::int64_t i = 0; i < height; ++i)
                    for (std::int64_t j = 0; j < columns; ++j) sums[j][i] += from[i] * factors[j];
            }
            for (std::int64_t j = 0; j < width; ++j) std::copy_n(sums[j], height, result.data() + (j0 + j) * m + i0);
        }
    }
    return result;
}

}  // namespace lockstep::gpu_double
