// Elements of tensors on host and device: conversion to and from float, and how a result is written.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <string>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "gpu/kernel.hpp"

namespace lockstep::gpu {

__host__ __device__ inline float load(float x) { return x; }
__host__ __device__ inline float load(__half x) { return __half2float(x); }
__host__ __device__ inline float load(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
__host__ __device__ T store(float x);
template <>
__host__ __device__ inline float store<float>(float x) {
    return x;
}
template <>
__host__ __device__ inline __half store<__half>(float x) {
    return __float2half(x);
}
template <>
__host__ __device__ inline __nv_bfloat16 store<__nv_bfloat16>(float x) {
    return __float2bfloat16(x);
}

template <class T>
__host__ __device__ void write(T& target, float value, bool add) {
    target = store<T>(add ? load(target) + value : value);
}

/// Calls f(T{}) with the element type of `dtype`: float, __half or __nv_bfloat16. Throws LogicError for others.
template <class F>
auto with_type(DType dtype, F&& f) {
    if (dtype == DType::fp32) return f(float{});
    if (dtype == DType::fp16) return f(__half{});
    if (dtype == DType::bf16) return f(__nv_bfloat16{});
    throw LogicError("no GPU kernel for elements of type " + std::string(to_string(dtype)));
}

/// Calls f with an unsigned integer of the size of a dtype's elements, for kernels that only move them. Throws
/// LogicError for elements of 8 bytes.
template <class F>
auto with_bits(DType dtype, F&& f) {
    const auto bytes = static_cast<int>(size_of(dtype).value);
    if (bytes == 1) return f(std::uint8_t{});
    if (bytes == 2) return f(std::uint16_t{});
    if (bytes == 4) return f(std::uint32_t{});
    throw LogicError("no GPU kernel for elements of type " + std::string(to_string(dtype)));
}

template <class T>
T* pointer(const Operand& operand) {
    return static_cast<T*>(operand.data);
}
/// Throws LogicError unless the operand is fp32.
inline float* floats(const Operand& operand) {
    if (operand.dtype != DType::fp32)
        throw LogicError("an operand must be fp32, not " + std::string(to_string(operand.dtype)));
    return static_cast<float*>(operand.data);
}
inline std::int32_t* integers(const Operand& operand) {
    if (operand.dtype != DType::int32)
        throw LogicError("an operand must be int32, not " + std::string(to_string(operand.dtype)));
    return static_cast<std::int32_t*>(operand.data);
}

}  // namespace lockstep::gpu
