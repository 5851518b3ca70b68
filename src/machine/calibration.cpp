#include "machine/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

constexpr std::string_view names[] = {"gemm",
                                      "convolution",
                                      "attention",
                                      "memory",
                                      "gemm_half_work_gflop",
                                      "kernel_overhead",
                                      "host_per_op",
                                      "link",
                                      "collective_base",
                                      "per_hop",
                                      "network_per_hop",
                                      "network",
                                      "compute_slowdown"};

void forget_source(Calibration& calibration, std::string_view constant) {
    std::erase_if(calibration.constant_sources,
                  [&](const std::string& s) { return s.starts_with(fmt::format("{}: ", constant)); });
}

/// A constant is written as its value or as {value, source}; this is the object and the key that hold the value.
class Constants {
public:
    Constants(const Node& node, Diagnostics& diagnostics, Calibration& calibration)
        : object_(node, "calibration", diagnostics), calibration_(calibration) {}

    Object& object() { return object_; }

    void read_share(std::string_view key, double& value, double max) {
        read(key, [&](Object& o, std::string_view k) {
            const std::size_t before = o.diagnostics().count();
            value = o.number_or(k, value, 0, max);
            if (value == 0 && o.diagnostics().count() == before) o.error(k, "must be above 0");
        });
    }
    void read_number(std::string_view key, double& value, double max) {
        read(key, [&](Object& o, std::string_view k) { value = o.number_or(k, value, 0, max); });
    }
    void read_time(std::string_view key, Seconds& value) {
        read(key, [&](Object& o, std::string_view k) { value = o.seconds_or(k, value); });
    }

private:
    template <class Read>
    void read(std::string_view key, Read read_value) {
        const auto node = object_.node(key);
        if (!node) return;
        forget_source(calibration_, key);
        if (!node->is_mapping()) return read_value(object_, key);
        Object constant(*node, std::string(key), object_.diagnostics());
        if (!constant.has("value")) constant.error("value", "key 'value' is missing");
        read_value(constant, "value");
        set_source(calibration_, key, constant.text("source"));
        constant.finish();
    }

    Object object_;
    Calibration& calibration_;
};

}  // namespace

Calibration read_calibration(const Node& node, Diagnostics& diagnostics, Calibration base) {
    Calibration result = std::move(base);
    Constants constants(node, diagnostics, result);
    result.source = constants.object().text("source");
    constants.read_share("gemm", result.gemm, 1);
    // Above 1 on a CPU, whose peak is the rate of its products.
    constants.read_share("convolution", result.convolution, 10);
    constants.read_share("attention", result.attention, 10);
    constants.read_share("memory", result.memory, 1);
    constants.read_number("gemm_half_work_gflop", result.gemm_half_work_gflop, 1e9);
    constants.read_time("kernel_overhead", result.kernel_overhead);
    constants.read_time("host_per_op", result.host_per_op);
    constants.read_share("link", result.link, 2);
    constants.read_time("collective_base", result.collective_base);
    constants.read_time("per_hop", result.per_hop);
    constants.read_time("network_per_hop", result.network_per_hop);
    constants.read_share("network", result.network, 1);
    constants.read_number("compute_slowdown", result.compute_slowdown, 0.99);
    constants.object().finish();
    return result;
}

std::span<const std::string_view> constant_names() { return names; }

bool has_all_constants(const Node& node) {
    return std::ranges::all_of(names, [&](std::string_view name) { return node.find(name) != nullptr; });
}

void set_source(Calibration& calibration, std::string_view constant, std::string_view source) {
    forget_source(calibration, constant);
    calibration.constant_sources.push_back(fmt::format("{}: {}", constant, source));
}

}  // namespace lockstep::machine
