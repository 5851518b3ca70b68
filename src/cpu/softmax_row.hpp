// Softmax of one row of scores in place.
#pragma once

#include <cmath>
#include <cstdint>

#include "cpu/fast_math.hpp"

namespace lockstep::cpu {

/// scores[i] -> exp(scale scores[i] - lse); returns lse = log(sum(exp(scale scores))).
inline float softmax_row(float* scores, std::int64_t n, float scale) {
    float largest = scores[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < n; ++i) {
        const float e = fast_exp((scores[i] - largest) * scale);
        scores[i] = e;
        sum += e;
    }
    const float inverse = 1.0F / sum;
    for (std::int64_t i = 0; i < n; ++i) scores[i] *= inverse;
    return largest * scale + std::log(sum);
}

/// The same where lse is known.
inline void softmax_row(float* scores, std::int64_t n, float scale, float lse) {
    for (std::int64_t i = 0; i < n; ++i) scores[i] = fast_exp(scores[i] * scale - lse);
}

}  // namespace lockstep::cpu
