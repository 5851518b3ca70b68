// Element types of tensors and the precisions a training step can run in.
#pragma once

#include <optional>
#include <string_view>

#include "base/units.hpp"

namespace lockstep {

/// Storage type of one tensor element. `tf32` is a compute type only: its elements are stored as fp32.
enum class DType { fp64, fp32, fp16, bf16, fp8, int32, int64, int8, uint8 };

/// Bytes of one element.
constexpr Bytes size_of(DType t) {
    switch (t) {
        case DType::fp64:
        case DType::int64: return Bytes{8};
        case DType::fp32:
        case DType::int32: return Bytes{4};
        case DType::fp16:
        case DType::bf16: return Bytes{2};
        case DType::fp8:
        case DType::int8:
        case DType::uint8: return Bytes{1};
    }
    return Bytes{0};
}

std::string_view to_string(DType t);

/// Type in which the multipliers of a device work: selects the peak rate.
enum class MathType { fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4 };

std::string_view to_string(MathType t);
std::optional<MathType> parse_math_type(std::string_view text);

/// What a user writes as `precision`.
enum class Precision { fp32, tf32, fp16_amp, bf16, fp8 };

std::string_view to_string(Precision p);  ///< "fp32", "tf32", "fp16-amp", "bf16", "fp8"
std::optional<Precision> parse_precision(std::string_view text);

/// Storage type of activations (and of working weights) under a precision.
DType activation_dtype(Precision p);
/// Multiplier type of matrix products under a precision.
MathType math_type(Precision p);

}  // namespace lockstep
