#include "cost/peak_rate.hpp"

#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::cost {

namespace {

/// The precision nearest to `math` that the device has, as a user writes it.
std::string_view nearest_precision(const machine::Device& device, MathType math) {
    const bool has_bf16 = device.peak(MathType::bf16).has_value();
    const bool has_fp16 = device.peak(MathType::fp16).has_value();
    if (math == MathType::tf32) return "fp32";
    if (has_bf16 && math != MathType::bf16) return to_string(Precision::bf16);
    if (has_fp16 && math != MathType::fp16) return to_string(Precision::fp16_amp);
    return to_string(Precision::fp32);
}

}  // namespace

FlopRate peak_rate(const machine::Device& device, MathType math) {
    const auto peak = device.peak(math);
    if (peak && peak->value > 0) return *peak * device.clock;
    std::string known;
    for (const machine::PeakRate& p : device.peaks)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(p.type));
    throw InputError(fmt::format("{} has no {} units (its peaks: {}); use precision {}", device.name, to_string(math),
                                 known.empty() ? "none given" : known, nearest_precision(device, math)));
}

}  // namespace lockstep::cost
