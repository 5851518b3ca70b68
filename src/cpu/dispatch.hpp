// Picks the loop for the dtypes and the write access of an op's operands.
#pragma once

#include <string>
#include <type_traits>

#include "base/error.hpp"
#include "cpu/bf16.hpp"
#include "cpu/kernel.hpp"

namespace lockstep::cpu {

/// Calls f(T{}) with the storage type of `dtype`: float or Bf16. Throws LogicError for others.
template <class F>
auto with_type(DType dtype, F&& f) {
    if (dtype == DType::fp32) return f(float{});
    if (dtype == DType::bf16) return f(Bf16{});
    throw LogicError("no CPU kernel for elements of type " + std::string(to_string(dtype)));
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
inline const std::int32_t* integers(const Operand& operand) {
    if (operand.dtype != DType::int32)
        throw LogicError("an operand must be int32, not " + std::string(to_string(operand.dtype)));
    return static_cast<const std::int32_t*>(operand.data);
}

/// Calls f(std::true_type) when the write adds to what is there, f(std::false_type) when it replaces it.
template <class F>
void with_access(step::Access access, const Moment& moment, F&& f) {
    if (adds(access, moment))
        f(std::true_type{});
    else
        f(std::false_type{});
}

template <class T, bool Add>
void write(T& target, float value) {
    target = store<T>(Add ? load(target) + value : value);
}

/// Throws LogicError unless the op has this many slots.
void expect_slots(const Operands& operands, std::size_t least_in, std::size_t least_out, const char* kernel);

}  // namespace lockstep::cpu
