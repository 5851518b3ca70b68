// The bf16 number as it is stored, and loads and stores that let one loop serve fp32 and bf16.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::cpu {

struct Bf16 {
    std::uint16_t bits = 0;
};

inline float load(float value) { return value; }
inline float load(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

/// Rounds to the nearest T; bf16: ties to even, NaN stays NaN. Written without branches, so that loops vectorise.
template <class T>
T store(float value);
template <>
inline float store<float>(float value) {
    return value;
}
template <>
inline Bf16 store<Bf16>(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
    return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded)};
}

}  // namespace lockstep::cpu
