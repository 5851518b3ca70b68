#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.hpp"
#include "calibrate/fit.hpp"
#include "fit/least_squares.hpp"

namespace lockstep::calibrate {

namespace {

using machine::Calibration;
using machine::Machine;

/// How far beyond the best measured rate products are believed to grow, where no peak says it.
constexpr double most_growth = 4;
constexpr double least_share = 1e-6;

/// (F + h) / R of one math type, R the rate that products grow to.
struct Ramp {
    FlopRate rate;
    Flops half_work;
    Seconds time(Flops work) const { return (work + half_work) / rate; }
};

std::vector<WorkPoint> of_math(const std::vector<WorkPoint>& points, MathType math) {
    std::vector<WorkPoint> result;
    std::ranges::copy_if(points, std::back_inserter(result), [&](const WorkPoint& p) { return p.math == math; });
    return result;
}

FlopRate best_rate(const std::vector<WorkPoint>& points) {
    FlopRate best;
    for (const WorkPoint& p : points) best = std::max(best, p.work / p.time);
    return best;
}

/// At most `peak`.
Ramp fit_ramp(const std::vector<WorkPoint>& products, Seconds overhead, FlopRate peak) {
    if (std::ranges::none_of(products, [&](const WorkPoint& p) { return p.work != products.front().work; }))
        throw IncompleteError(
            fmt::format("{} size{} of {} products can't show how their rate grows; measure at least two sizes",
                        products.size(), products.size() == 1 ? "" : "s", to_string(products.front().math)));
    fit::LinearSystem system(2);
    for (const WorkPoint& p : products)
        system.add({1, p.work.value}, (p.time - overhead).value, 1 / (p.time.value * p.time.value));
    const std::array bounds{fit::Bound{0}, fit::Bound{1 / peak.value, 1 / (least_share * peak.value)}};
    const fit::Solution solution = fit::solve_bounded(system, bounds);
    const FlopRate rate{1 / solution.x[1]};
    return {rate, Seconds{solution.x[0]} * rate};
}

/// Of those that were measured, the one that training uses most.
std::optional<MathType> leading_math(const std::vector<WorkPoint>& products) {
    for (const MathType math : {MathType::bf16, MathType::fp16, MathType::tf32, MathType::fp32})
        if (!of_math(products, math).empty()) return math;
    return std::nullopt;
}

void add_measured_peaks(machine::Device& device, const std::vector<WorkPoint>& products, Seconds overhead,
                        const std::string& source) {
    for (const MathType math : {MathType::fp32, MathType::tf32, MathType::fp16, MathType::bf16}) {
        const auto mine = of_math(products, math);
        if (mine.empty()) continue;
        const Ramp ramp = fit_ramp(mine, overhead, most_growth * best_rate(mine));
        device.peaks.push_back({math, ramp.rate, std::nullopt, math != MathType::fp32});
    }
    device.sources.insert(
        device.sources.begin(),
        fmt::format("peak rates: what measured matrix products grow to, not of a data sheet; {}", source));
}

/// The share at which all of them together take the time that was measured.
std::optional<double> convolution_share(const std::vector<WorkPoint>& convolutions, FlopRate peak, Flops half_work,
                                        Seconds overhead) {
    Seconds at_peak, measured;
    for (const WorkPoint& c : convolutions) {
        at_peak += (c.work + half_work) / peak;
        measured += c.time - overhead;
    }
    if (!(measured.value > 0) || !(at_peak.value > 0)) return std::nullopt;
    return std::min(1.0, at_peak / measured);
}

void compare(const Machine& machine, Comparison::Kind kind, const std::vector<WorkPoint>& points, double share,
             std::vector<Comparison>& comparisons) {
    const Calibration& c = machine.calibration;
    for (const WorkPoint& p : points) {
        const auto peak = machine.device.peak(p.math);
        if (!peak) continue;
        const Seconds fitted = (p.work + Flops{c.gemm_half_work_gflop * 1e9}) / (*peak * share) + c.kernel_overhead;
        comparisons.push_back({kind, fmt::format("{} {}", to_string(p.math), p.what), p.size, p.time, fitted});
    }
}

void fit_memory(Machine& machine, Bandwidth measured, const std::string& source) {
    if (!(measured.value > 0)) return;
    if (!(machine.device.memory_bandwidth.value > 0)) {
        machine.device.memory_bandwidth = measured;
        machine.device.notes.emplace_back("the memory bandwidth is the measured one");
    }
    machine.calibration.memory = std::min(1.0, measured / machine.device.memory_bandwidth);
    set_source(machine.calibration, "memory", source);
}

}  // namespace

std::vector<Comparison> fit_device(Machine& machine, const DevicePoints& points, const std::string& source) {
    Calibration& c = machine.calibration;
    fit_memory(machine, points.memory, source);
    c.kernel_overhead = points.kernel_overhead;
    set_source(c, "kernel_overhead", source);
    if (machine.device.peaks.empty()) add_measured_peaks(machine.device, points.products, c.kernel_overhead, source);

    std::vector<Comparison> comparisons;
    const auto math = leading_math(points.products);
    const auto peak = math ? machine.device.peak(*math) : std::nullopt;
    if (!peak) return comparisons;
    const std::string of_math_source = fmt::format("{} ({})", source, to_string(*math));
    const Ramp ramp = fit_ramp(of_math(points.products, *math), c.kernel_overhead, *peak);
    c.gemm = ramp.rate / *peak;
    c.gemm_half_work_gflop = ramp.half_work.value / 1e9;
    set_source(c, "gemm", of_math_source);
    set_source(c, "gemm_half_work_gflop", of_math_source);
    if (const auto share =
            convolution_share(of_math(points.convolutions, *math), *peak, ramp.half_work, c.kernel_overhead)) {
        c.convolution = *share;
        set_source(c, "convolution", of_math_source);
    }
    compare(machine, Comparison::Kind::product, points.products, c.gemm, comparisons);
    compare(machine, Comparison::Kind::convolution, of_math(points.convolutions, *math), c.convolution, comparisons);
    return comparisons;
}

void name_unmeasured(Calibration& calibration, const std::string& measured) {
    for (const std::string_view name : machine::constant_names()) {
        const std::string prefix = fmt::format("{}: ", name);
        const auto own = std::ranges::find_if(calibration.constant_sources,
                                              [&](const std::string& s) { return s.starts_with(prefix); });
        const bool has_own = own != calibration.constant_sources.end();
        const std::string source = has_own ? own->substr(prefix.size()) : calibration.source;
        if (!source.starts_with(measured)) set_source(calibration, name, "not measured here; " + source);
    }
    calibration.source = measured;
}

}  // namespace lockstep::calibrate
