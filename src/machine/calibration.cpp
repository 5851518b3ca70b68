#include "machine/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

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
        forget_source(key);
        if (!node->is_mapping()) return read_value(object_, key);
        Object constant(*node, std::string(key), object_.diagnostics());
        if (!constant.has("value")) constant.error("value", "key 'value' is missing");
        read_value(constant, "value");
        calibration_.constant_sources.push_back(fmt::format("{}: {}", key, constant.text("source")));
        constant.finish();
    }

    void forget_source(std::string_view key) {
        std::erase_if(calibration_.constant_sources,
                      [&](const std::string& s) { return s.starts_with(fmt::format("{}: ", key)); });
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
    constants.read_share("convolution", result.convolution, 1);
    constants.read_share("attention", result.attention, 1);
    constants.read_share("memory", result.memory, 1);
    constants.read_number("gemm_half_work_gflop", result.gemm_half_work_gflop, 1e9);
    constants.read_time("kernel_overhead", result.kernel_overhead);
    constants.read_time("host_per_op", result.host_per_op);
    constants.read_share("link", result.link, 2);
    constants.read_time("collective_base", result.collective_base);
    constants.read_time("per_hop", result.per_hop);
    constants.read_time("network_per_hop", result.network_per_hop);
    constants.read_number("compute_slowdown", result.compute_slowdown, 0.99);
    constants.object().finish();
    return result;
}

}  // namespace lockstep::machine
