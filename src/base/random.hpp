// Counter-based random numbers: the value depends on (seed, stream, index) alone, so that a shard of a tensor gets the
// numbers its elements have in the whole tensor, on any rank and in any order.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep {

/// 64 well mixed bits of (seed, stream, index); the finaliser is SplitMix64's (Steele, Lea, Flood 2014) applied to a
/// combination of the three words.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    auto mix = [](std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    };
    return mix(mix(seed + 0x9e3779b97f4a7c15ULL * (stream + 1)) + 0x9e3779b97f4a7c15ULL * (index + 1));
}

/// Uniform in [0, 1) with 24 bits, so that it is exact in a float.
constexpr float random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    return static_cast<float>(random_bits(seed, stream, index) >> 40) * 0x1p-24F;
}

/// Standard normal by Box and Muller from one 64-bit draw.
inline float random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    const std::uint64_t bits = random_bits(seed, stream, index);
    const float u1 = (static_cast<float>(bits >> 40) + 0.5F) * 0x1p-24F;
    const float u2 = static_cast<float>((bits >> 8) & 0xffffffU) * 0x1p-24F;
    return std::sqrt(-2.0F * std::log(u1)) * std::cos(2.0F * std::numbers::pi_v<float> * u2);
}

/// Uniform in (0, 1), 52 bits, never 0 or 1, so that every quantile of it is finite: of a seed and any number of
/// integers that say what is drawn (step, class of ranks, op ...), each of which may take any value.
template <class... Integers>
constexpr double random_open_uniform(std::uint64_t seed, Integers... which) {
    std::uint64_t bits = seed;
    std::uint64_t place = 0;
    ((bits = random_bits(bits, place++, static_cast<std::uint64_t>(which))), ...);
    return (static_cast<double>(random_bits(bits, place, 0) >> 12) + 0.5) * 0x1p-52;
}

}  // namespace lockstep
