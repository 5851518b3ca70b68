// Random numbers on host and device: the bits and the uniform numbers of base/random.hpp are constexpr and serve both.
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/random.hpp"

namespace lockstep::gpu {

/// As lockstep::random_normal, by the same formula.
__host__ __device__ inline float random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    const std::uint64_t bits = random_bits(seed, stream, index);
    const float u1 = (static_cast<float>(bits >> 40) + 0.5F) * 0x1p-24F;
    const float u2 = static_cast<float>((bits >> 8) & 0xffffffU) * 0x1p-24F;
    return sqrtf(-2.0F * logf(u1)) * cosf(2.0F * std::numbers::pi_v<float> * u2);
}

}  // namespace lockstep::gpu
