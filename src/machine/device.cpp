#include "machine/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "machine/field.hpp"

namespace lockstep::machine {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

const std::vector<std::string>& math_type_names() {
    static const std::vector<std::string> names{"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};
    return names;
}

std::optional<PeakRate> read_peak(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "peak", diagnostics);
    PeakRate peak;
    const std::string type = object.text("type");
    const auto parsed = parse_math_type(type);
    if (!parsed && !type.empty())
        object.error("type",
                     fmt::format("'{}' is no type of arithmetic{}; use one of {}", type,
                                 config::did_you_mean(type, math_type_names()), fmt::join(math_type_names(), ", ")));
    peak.type = parsed.value_or(MathType::fp32);
    peak.dense = positive(object, "dense", &Object::flop_rate);
    if (object.has("sparse")) peak.sparse = positive(object, "sparse", &Object::flop_rate);
    peak.tensor_core = object.flag_or("tensor_core", false);
    object.finish();
    if (peak.sparse && *peak.sparse < peak.dense)
        object.error("sparse", "is below dense (the two may be swapped); dense is the rate without sparsity");
    return parsed ? std::optional(peak) : std::nullopt;
}

std::vector<PeakRate> read_peaks(Object& device) {
    std::vector<PeakRate> peaks;
    for (const Node& item : device.nodes("peaks")) {
        const auto peak = read_peak(item, device.diagnostics());
        if (!peak) continue;
        const bool is_repeated = std::ranges::any_of(
            peaks, [&](const PeakRate& p) { return p.type == peak->type && p.tensor_core == peak->tensor_core; });
        if (is_repeated)
            device.diagnostics().error(item.where(), fmt::format("peaks: {} is there twice", to_string(peak->type)));
        peaks.push_back(*peak);
    }
    const bool is_empty_list = device.has("peaks") && device.nodes("peaks").empty();
    if (is_empty_list) device.error("peaks", "wants at least one rate, such as {type: fp32, dense: 19.5 TFLOPS}");
    return peaks;
}

NvLink read_nvlink(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "nvlink", diagnostics);
    NvLink nvlink;
    nvlink.generation = static_cast<int>(object.integer("generation", 1, 100));
    nvlink.links = static_cast<int>(object.integer("links", 1, 1000));
    nvlink.per_link = positive(object, "per_link", &Object::bandwidth);
    object.finish();
    return nvlink;
}

Pcie read_pcie(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "pcie", diagnostics);
    Pcie pcie;
    pcie.generation = static_cast<int>(object.integer("generation", 1, 100));
    pcie.lanes = static_cast<int>(object.integer("lanes", 1, 32));
    pcie.per_direction = positive(object, "per_direction", &Object::bandwidth);
    object.finish();
    return pcie;
}

Price read_price(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "price", diagnostics);
    Price price{UsdPerHour{object.number("usd_per_hour", 0)}, object.text("date"), object.text("source")};
    object.finish();
    return price;
}

}  // namespace

std::optional<FlopRate> Device::peak(MathType type) const {
    std::optional<FlopRate> best;
    for (const PeakRate& p : peaks)
        if (p.type == type && (!best || p.dense > *best)) best = p.dense;
    return best;
}

int capability_major(const Device& device) {
    int major = 0;
    const std::string& text = device.compute_capability;
    std::from_chars(text.data(), text.data() + text.size(), major);
    return major;
}

Device read_device(const Node& node, Diagnostics& diagnostics) {
    Object object(node, "device", diagnostics);
    Device device;
    device.title = object.text("title");
    device.kind = object.choice_or("kind", {"gpu", "cpu"}, "gpu") == "cpu" ? DeviceKind::cpu : DeviceKind::gpu;
    device.driver_names = texts_if_any(object, "driver_names");
    device.architecture = object.text_or("architecture", "");
    device.compute_capability = object.text_or("compute_capability", "");
    device.calibration = object.text_or("calibration", "");
    device.peaks = read_peaks(object);
    device.memory = positive(object, "memory", &Object::bytes);
    device.memory_bandwidth = positive(object, "memory_bandwidth", &Object::bandwidth);
    device.l2 = object.bytes_or("l2", {});
    device.sms = static_cast<int>(object.integer("sms", 1, 100000));
    device.fp32_cores_per_sm = static_cast<int>(object.integer_or("fp32_cores_per_sm", 0, 0, 100000));
    device.fp64_cores_per_sm = static_cast<int>(object.integer_or("fp64_cores_per_sm", 0, 0, 100000));
    device.tensor_cores_per_sm = static_cast<int>(object.integer_or("tensor_cores_per_sm", 0, 0, 100000));
    if (const auto nvlink = object.node("nvlink")) device.nvlink = read_nvlink(*nvlink, diagnostics);
    if (const auto pcie = object.node("pcie")) device.pcie = read_pcie(*pcie, diagnostics);
    device.power = object.watts_or("power", {});
    if (const auto price = object.node("price")) device.price = read_price(*price, diagnostics);
    device.sources = texts_if_any(object, "sources");
    device.notes = texts_if_any(object, "notes");
    object.finish();
    return device;
}

}  // namespace lockstep::machine
