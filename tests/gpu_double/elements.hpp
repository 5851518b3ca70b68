// Elements of tensors in the memory that the doubles compute on: all as floats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::gpu_double {

enum class Element { fp32, fp16, bf16 };

constexpr std::size_t size_of(Element element) { return element == Element::fp32 ? 4 : 2; }

inline float load(const void* data, Element element, std::int64_t i) {
    if (element == Element::fp16) return __half2float(static_cast<const __half*>(data)[i]);
    if (element == Element::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    return static_cast<const float*>(data)[i];
}
inline void store(void* data, Element element, std::int64_t i, float value) {
    if (element == Element::fp16)
        static_cast<__half*>(data)[i] = __float2half(value);
    else if (element == Element::bf16)
        static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(value);
    else
        static_cast<float*>(data)[i] = value;
}

/// As tensor cores read fp32: 10 bits behind the point, rounded to nearest.
inline float to_tf32(float value) {
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & ~std::uint32_t{0x1fff});
}

/// What is `before` is not read when beta is 0: it may be uninitialised, even not a number.
inline void blend(void* data, Element element, std::int64_t i, float alpha, float value, float beta) {
    store(data, element, i, beta == 0 ? alpha * value : alpha * value + beta * load(data, element, i));
}

inline std::vector<float> load_all(const void* data, Element element, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = load(data, element, i);
    return values;
}

}  // namespace lockstep::gpu_double
