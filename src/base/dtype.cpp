#include "base/dtype.hpp"

#include <array>
#include <utility>

namespace lockstep {

namespace {

constexpr std::array<std::pair<MathType, std::string_view>, 8> math_names{{{MathType::fp64, "fp64"},
                                                                           {MathType::fp32, "fp32"},
                                                                           {MathType::tf32, "tf32"},
                                                                           {MathType::fp16, "fp16"},
                                                                           {MathType::bf16, "bf16"},
                                                                           {MathType::fp8, "fp8"},
                                                                           {MathType::int8, "int8"},
                                                                           {MathType::fp4, "fp4"}}};

constexpr std::array<std::pair<Precision, std::string_view>, 5> precision_names{{{Precision::fp32, "fp32"},
                                                                                 {Precision::tf32, "tf32"},
                                                                                 {Precision::fp16_amp, "fp16-amp"},
                                                                                 {Precision::bf16, "bf16"},
                                                                                 {Precision::fp8, "fp8"}}};

}  // namespace

std::string_view to_string(DType t) {
    switch (t) {
        case DType::fp64: return "fp64";
        case DType::fp32: return "fp32";
        case DType::fp16: return "fp16";
        case DType::bf16: return "bf16";
        case DType::fp8: return "fp8";
        case DType::int32: return "int32";
        case DType::int64: return "int64";
        case DType::int8: return "int8";
        case DType::uint8: return "uint8";
    }
    return "?";
}

std::string_view to_string(MathType t) {
    for (auto& [type, name] : math_names)
        if (type == t) return name;
    return "?";
}

std::optional<MathType> parse_math_type(std::string_view text) {
    for (auto& [type, name] : math_names)
        if (name == text) return type;
    return std::nullopt;
}

std::string_view to_string(Precision p) {
    for (auto& [precision, name] : precision_names)
        if (precision == p) return name;
    return "?";
}

std::optional<Precision> parse_precision(std::string_view text) {
    for (auto& [precision, name] : precision_names)
        if (name == text) return precision;
    return std::nullopt;
}

DType activation_dtype(Precision p) {
    switch (p) {
        case Precision::fp32:
        case Precision::tf32: return DType::fp32;
        case Precision::fp16_amp: return DType::fp16;
        case Precision::bf16:
        case Precision::fp8: return DType::bf16;
    }
    return DType::fp32;
}

MathType math_type(Precision p) {
    switch (p) {
        case Precision::fp32: return MathType::fp32;
        case Precision::tf32: return MathType::tf32;
        case Precision::fp16_amp: return MathType::fp16;
        case Precision::bf16: return MathType::bf16;
        case Precision::fp8: return MathType::fp8;
    }
    return MathType::fp32;
}

}  // namespace lockstep
