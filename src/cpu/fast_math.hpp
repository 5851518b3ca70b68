// exp, tanh and erf in plain arithmetic, which compilers turn into vector code (the library's are calls).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep::cpu {

/// e^x with a relative error below 3e-7 (degree 6 on |r| <= ln 2 / 2); x is clamped to [-87, 88].
inline float fast_exp(float x) {
    constexpr float round = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
    x = x < -87.0F ? -87.0F : x;
    x = x > 88.0F ? 88.0F : x;
    const float shifted = x * std::numbers::log2e_v<float> + round;
    const float n = shifted - round;
    const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 in two parts (Cody and Waite)
    float p = 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23;
    return p * std::bit_cast<float>(exponent);
}

/// tanh with an absolute error below 3e-7.
inline float fast_tanh(float x) {
    const float x2 = x * x;
    const float series = x * (1.0F - x2 * (1.0F / 3 - x2 * (2.0F / 15 - x2 * (17.0F / 315))));
    const float quotient = 1.0F - 2.0F / (fast_exp(2.0F * x) + 1.0F);
    return x2 < 0.01F ? series : quotient;
}

/// erf with an absolute error below 5e-7: formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions.
inline float fast_erf(float x) {
    const float magnitude = std::fabs(x);
    const float t = 1.0F / (1.0F + 0.3275911F * magnitude);
    const float p =
        t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
    return std::copysign(1.0F - p * fast_exp(-magnitude * magnitude), x);
}

inline float sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

}  // namespace lockstep::cpu
