#include <fmt/format.h>

#include "config/quantity.hpp"
#include "report/machine_tables.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

using machine::Device;
using machine::DeviceKind;

constexpr std::string_view none = "-";

std::string peak_text(const Device& device, MathType type) {
    const auto peak = device.peak(type);
    return peak ? fmt::format("{:.4g}", peak->value / 1e12) : std::string(none);
}

std::string price_text(const Device& device) {
    return device.price ? fmt::format("{:.2f}", device.price->per_hour.value) : std::string(none);
}

/// "12 x 25 GB/s" of one direction.
std::string nvlink_text(const Device& device) {
    if (device.nvlink.links == 0) return std::string(none);
    return fmt::format("{} x {}", device.nvlink.links, config::format(device.nvlink.per_link));
}

std::string rate_or_none(const std::optional<FlopRate>& rate) {
    return rate ? config::format(*rate) : std::string(none);
}

/// Integers are operations, not floating-point ones: "624 TOP/s".
std::string rate_text(MathType type, const std::optional<FlopRate>& rate) {
    std::string text = rate_or_none(rate);
    const auto at = text.find("FLOP/s");
    if (type == MathType::int8 && at != std::string::npos) text.replace(at, 6, "OP/s");
    return text;
}

std::string peaks_table(const Device& device) {
    Table table({{"peak", Align::left}, {"units", Align::left}, {"dense"}, {"with 2:4 sparsity"}});
    for (const auto& peak : device.peaks)
        table.add({std::string(to_string(peak.type)), peak.tensor_core ? "tensor cores" : "cores",
                   rate_text(peak.type, peak.dense), rate_text(peak.type, peak.sparse)});
    return table.text("  ");
}

std::string facts(const Device& d) {
    std::string text;
    const auto add = [&](std::string_view name, const std::string& value) {
        text += wrapped(value, fmt::format("  {:<18}", name));
    };
    if (!d.architecture.empty())
        add(d.kind == DeviceKind::gpu ? "architecture" : "vector extension",
            d.architecture + (d.compute_capability.empty() ? "" : ", compute capability " + d.compute_capability));
    add("memory", fmt::format("{} at {}", config::format(d.memory), config::format(d.memory_bandwidth)));
    if (d.l2.value > 0) add("L2 cache", config::format(d.l2));
    if (d.kind == DeviceKind::gpu)
        add("SMs", fmt::format("{}; in each {} FP32 cores, {} FP64 cores, {} tensor cores", d.sms, d.fp32_cores_per_sm,
                               d.fp64_cores_per_sm, d.tensor_cores_per_sm));
    else
        add("cores", std::to_string(d.sms));
    if (d.nvlink.links > 0)
        add("NVLink",
            fmt::format("generation {}, {} links of {} = {} in one direction", d.nvlink.generation, d.nvlink.links,
                        config::format(d.nvlink.per_link), config::format(d.nvlink.links * d.nvlink.per_link)));
    if (d.pcie.lanes > 0)
        add("PCIe", fmt::format("generation {} x{}, {} in one direction", d.pcie.generation, d.pcie.lanes,
                                config::format(d.pcie.per_direction)));
    if (d.power.value > 0) add("power", config::format(d.power));
    if (d.price)
        add("price",
            fmt::format("{:.2f} USD an hour ({}; {})", d.price->per_hour.value, d.price->date, d.price->source));
    return text;
}

config::Json peaks_json(const Device& device) {
    config::Json peaks = config::Json::array();
    for (const auto& peak : device.peaks) {
        config::Json& item = peaks.push(config::Json::object());
        item.set("type", to_string(peak.type));
        item.set("tensor_core", peak.tensor_core);
        item.set("dense_flops", peak.dense.value);
        item.set("sparse_flops", peak.sparse ? config::Json(peak.sparse->value) : config::Json());
    }
    return peaks;
}

config::Json texts_json(const std::vector<std::string>& texts) {
    config::Json json = config::Json::array();
    for (const std::string& text : texts) json.push(text);
    return json;
}

config::Json links_json(const Device& d) {
    config::Json json = config::Json::object();
    config::Json& nvlink = json.set("nvlink", config::Json());
    if (d.nvlink.links > 0) {
        nvlink.set("generation", d.nvlink.generation);
        nvlink.set("links", d.nvlink.links);
        nvlink.set("per_link", d.nvlink.per_link.value);
    }
    config::Json& pcie = json.set("pcie", config::Json());
    if (d.pcie.lanes > 0) {
        pcie.set("generation", d.pcie.generation);
        pcie.set("lanes", d.pcie.lanes);
        pcie.set("per_direction", d.pcie.per_direction.value);
    }
    return json;
}

}  // namespace

std::string format_device_list(const std::vector<Device>& devices) {
    Table table({{"device", Align::left},
                 {"FP32"},
                 {"TF32"},
                 {"FP16"},
                 {"BF16"},
                 {"FP8"},
                 {"memory"},
                 {"bandwidth"},
                 {"NVLink"},
                 {"USD/h"}});
    for (const Device& d : devices)
        table.add({d.name, peak_text(d, MathType::fp32), peak_text(d, MathType::tf32), peak_text(d, MathType::fp16),
                   peak_text(d, MathType::bf16), peak_text(d, MathType::fp8), config::format(d.memory),
                   config::format(d.memory_bandwidth), nvlink_text(d), price_text(d)});
    return table.text() +
           "Peaks in TFLOPS without sparsity; NVLink in one direction; `device show NAME` has sources.\n";
}

std::string format_device(const Device& device) {
    return fmt::format("{}: {}\n{}\n{}{}{}{}", device.name, device.title, facts(device), peaks_table(device),
                       wrapped_list("Notes", device.notes), wrapped_list("Sources", device.sources),
                       device.file.empty() ? "" : fmt::format("\nFile: {}\n", device.file.string()));
}

config::Json device_json(const Device& d) {
    config::Json json = config::Json::object();
    json.set("name", d.name);
    json.set("title", d.title);
    json.set("kind", d.kind == DeviceKind::gpu ? "gpu" : "cpu");
    json.set("file", d.file.string());
    json.set("architecture", d.architecture);
    json.set("compute_capability", d.compute_capability);
    json.set("peaks", peaks_json(d));
    json.set("memory_bytes", d.memory.value);
    json.set("memory_bandwidth", d.memory_bandwidth.value);
    json.set("l2_bytes", d.l2.value > 0 ? config::Json(d.l2.value) : config::Json());
    json.set("sms", d.sms);
    json.set("fp32_cores_per_sm", d.fp32_cores_per_sm);
    json.set("fp64_cores_per_sm", d.fp64_cores_per_sm);
    json.set("tensor_cores_per_sm", d.tensor_cores_per_sm);
    const config::Json links = links_json(d);
    for (const auto& [key, value] : std::get<config::Json::Object>(links.value())) json.set(key, value);
    json.set("power_watts", d.power.value > 0 ? config::Json(d.power.value) : config::Json());
    config::Json& price = json.set("price", config::Json());
    if (d.price) {
        price.set("usd_per_hour", d.price->per_hour.value);
        price.set("date", d.price->date);
        price.set("source", d.price->source);
    }
    json.set("notes", texts_json(d.notes));
    json.set("sources", texts_json(d.sources));
    return json;
}

config::Json device_list_json(const std::vector<Device>& devices) {
    config::Json json = config::Json::array();
    for (const Device& device : devices) json.push(device_json(device));
    return json;
}

}  // namespace lockstep::report
