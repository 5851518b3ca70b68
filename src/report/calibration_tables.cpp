#include "report/calibration_tables.hpp"

#include <fmt/format.h>

#include <cmath>

#include "config/quantity.hpp"
#include "fit/quantiles.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

using calibrate::Comparison;

/// "Median residual: products 4 %, collectives 12 %".
std::string medians(const std::vector<Comparison>& comparisons) {
    constexpr std::pair<Comparison::Kind, std::string_view> kinds[] = {{Comparison::Kind::product, "products"},
                                                                       {Comparison::Kind::convolution, "convolutions"},
                                                                       {Comparison::Kind::collective, "collectives"}};
    std::string text;
    for (const auto& [kind, name] : kinds) {
        std::vector<double> sizes;
        for (const Comparison& c : comparisons)
            if (c.kind == kind) sizes.push_back(std::abs(c.residual()));
        if (!sizes.empty())
            text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", name, fit::median(sizes) * 100);
    }
    return fmt::format("Median residual: {}\n", text);
}

}  // namespace

std::string format_constants(const machine::Calibration& c) {
    std::string text = "\nCalibration: share of the peak that is reached, and times that are added\n";
    text +=
        fmt::format("  gemm {:.3g} (half of it at {:.3g} GFLOP), convolution {:.3g}, attention {:.3g}, memory {:.3g}\n",
                    c.gemm, c.gemm_half_work_gflop, c.convolution, c.attention, c.memory);
    text += fmt::format("  link {:.3g}, network {:.3g}, a collective {} + {} a step ({} between nodes)\n", c.link,
                        c.network, config::format(c.collective_base), config::format(c.per_hop),
                        config::format(c.network_per_hop));
    text += fmt::format("  {} a kernel, compute {:.3g} slower beside a collective\n", config::format(c.kernel_overhead),
                        c.compute_slowdown);
    text += wrapped(c.source, "  source: ");
    for (const std::string& source : c.constant_sources) text += wrapped(source, "  - ");
    return text;
}

std::string format_calibration(const machine::Calibration& calibration,
                               const std::vector<calibrate::Comparison>& comparisons) {
    Table table({{"what", Align::left}, {"size"}, {"measured"}, {"fitted"}, {"residual"}});
    for (const auto& c : comparisons)
        table.add({c.what, c.size, config::format(c.measured), config::format(c.fitted),
                   fmt::format("{:+.0f} %", c.residual() * 100)});
    return (comparisons.empty() ? "" : table.text() + medians(comparisons)) + format_constants(calibration);
}

config::Json comparisons_json(const std::vector<calibrate::Comparison>& comparisons) {
    config::Json json = config::Json::array();
    for (const auto& c : comparisons) {
        config::Json& item = json.push(config::Json::object());
        item.set("what", c.what);
        item.set("size", c.size);
        item.set("measured_s", c.measured.value);
        item.set("fitted_s", c.fitted.value);
        item.set("residual", c.residual());
    }
    return json;
}

}  // namespace lockstep::report
