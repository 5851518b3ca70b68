#include "report/gpu_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/quantity.hpp"
#include "report/table.hpp"
#include "report/wrapped.hpp"

namespace lockstep::report {

namespace {

constexpr std::string_view none = "-";
constexpr MathType maths[] = {MathType::fp32, MathType::tf32, MathType::fp16, MathType::bf16};

std::string or_none(bool is_told, std::string text) { return is_told ? std::move(text) : std::string(none); }

std::string facts_table(const std::vector<Gpu>& gpus) {
    Table table({{"GPU"},
                 {"name", Align::left},
                 {"capability"},
                 {"SMs"},
                 {"clock"},
                 {"memory"},
                 {"free"},
                 {"bandwidth"},
                 {"MIG"}});
    for (const auto& [f, links] : gpus)
        table.add({std::to_string(f.ordinal), f.name, fmt::format("{}.{}", f.compute_major, f.compute_minor),
                   std::to_string(f.multiprocessors),
                   or_none(f.clock.value > 0, fmt::format("{:.0f} MHz", f.clock.value / 1e6)), config::format(f.memory),
                   or_none(f.free_memory.value > 0, config::format(f.free_memory)),
                   or_none(f.memory_bandwidth.value > 0, config::format(f.memory_bandwidth)), f.is_mig ? "yes" : "no"});
    return table.text();
}

/// "gpu1" of a visible GPU, else its place on the bus.
std::string peer_name(const std::vector<Gpu>& gpus, const std::string& pci_bus_id) {
    if (pci_bus_id.empty()) return "switches";
    for (const Gpu& gpu : gpus)
        if (gpu.facts.pci_bus_id == pci_bus_id) return fmt::format("GPU {}", gpu.facts.ordinal);
    return pci_bus_id;
}

std::string nvlinks_text(const std::vector<Gpu>& gpus, const gpu::GpuLinks& links) {
    std::string text;
    for (const gpu::NvLinkPeer& peer : links.nv_links)
        text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", peer.links, peer_name(gpus, peer.pci_bus_id));
    return text.empty() ? std::string(none) : text;
}

std::string links_table(const std::vector<Gpu>& gpus) {
    Table table({{"GPU"}, {"PCI", Align::left}, {"UUID", Align::left}, {"NUMA"}, {"PCIe"}, {"possible"}});
    for (const auto& [f, links] : gpus) {
        const gpu::PcieLink p = links.pcie.value_or(gpu::PcieLink{});
        table.add({std::to_string(f.ordinal), f.pci_bus_id, f.uuid,
                   or_none(f.numa_node >= 0, std::to_string(f.numa_node)),
                   or_none(links.pcie.has_value(), fmt::format("{} x{}", p.generation, p.lanes)),
                   or_none(links.pcie.has_value(), fmt::format("{} x{}", p.most_generation, p.most_lanes))});
    }
    std::string text = table.text() + "\n";
    for (const auto& [f, links] : gpus)
        text += wrapped(nvlinks_text(gpus, links), fmt::format("NVLinks of GPU {}: ", f.ordinal));
    return text;
}

std::string warnings(const std::vector<Gpu>& gpus) {
    std::string text;
    const auto warn = [&](const std::string& what) { text += wrapped(what, "warning: "); };
    for (const auto& [f, links] : gpus) {
        if (!links.untold.empty()) warn(fmt::format("the links of GPU {} are not told ({})", f.ordinal, links.untold));
        if (!links.pcie) continue;
        const gpu::PcieLink& p = *links.pcie;
        if (p.lanes < p.most_lanes)
            warn(
                fmt::format("GPU {} has {} PCIe lanes of {} possible: its copies are slower in proportion; look at "
                            "the slot, the riser and the firmware's bifurcation",
                            f.ordinal, p.lanes, p.most_lanes));
        if (p.generation < p.most_generation)
            warn(
                fmt::format("the PCIe link of GPU {} runs at generation {} of {} possible; an idle GPU lowers it by "
                            "itself, one at work should not",
                            f.ordinal, p.generation, p.most_generation));
    }
    return text;
}

/// "61.2 TFLOP/s (91 %)" where there is a peak.
std::string rate_text(FlopRate rate, const std::optional<FlopRate>& peak) {
    const std::string text = config::format(rate);
    return peak ? fmt::format("{} ({:.0f} %)", text, rate / *peak * 100) : text;
}

std::vector<MathType> maths_of(const gpu::DeviceMeasurement& measured) {
    std::vector<MathType> result;
    for (const MathType math : maths)
        if (std::ranges::any_of(measured.products, [&](const auto& p) { return p.math == math; }))
            result.push_back(math);
    return result;
}

std::vector<Table::Column> columns_by_math(std::vector<Table::Column> first, const gpu::DeviceMeasurement& measured) {
    for (const MathType math : maths_of(measured)) first.push_back({std::string(to_string(math))});
    return first;
}

std::string products_table(const machine::Device& device, const gpu::DeviceMeasurement& measured) {
    Table table(columns_by_math({{"n"}}, measured));
    std::vector<std::int64_t> sizes;
    for (const auto& p : measured.products)
        if (std::ranges::count(sizes, p.n) == 0) sizes.push_back(p.n);
    std::ranges::sort(sizes);
    for (const std::int64_t n : sizes) {
        std::vector<std::string> cells{std::to_string(n)};
        for (const MathType math : maths_of(measured)) {
            const auto p =
                std::ranges::find_if(measured.products, [&](const auto& q) { return q.n == n && q.math == math; });
            cells.push_back(p == measured.products.end() ? std::string(none) : rate_text(p->rate, device.peak(math)));
        }
        table.add(std::move(cells));
    }
    return table.text("  ");
}

std::string_view short_name(step::Pass pass) {
    switch (pass) {
        case step::Pass::forward: return "forward";
        case step::Pass::backward_data: return "data";
        case step::Pass::backward_weights: return "weights";
    }
    return "";
}

std::string convolutions_table(const gpu::DeviceMeasurement& measured) {
    Table table(columns_by_math({{"layer", Align::left}, {"pass", Align::left}, {"images"}}, measured));
    for (std::size_t i = 0; i < measured.convolutions.size(); ++i) {
        const auto& first = measured.convolutions[i];
        const auto is_same = [&](const auto& c) { return c.name == first.name && c.pass == first.pass; };
        if (std::ranges::find_if(measured.convolutions, is_same) !=
            measured.convolutions.begin() + static_cast<long>(i))
            continue;
        std::vector<std::string> cells{first.name, std::string(short_name(first.pass)),
                                       fmt::format("{} x {}", first.batch, first.image_size)};
        for (const MathType math : maths_of(measured)) {
            const auto c = std::ranges::find_if(
                measured.convolutions, [&](const auto& other) { return is_same(other) && other.math == math; });
            const bool is_there = c != measured.convolutions.end();
            // Another number of images than the row says is said.
            const bool is_smaller = is_there && (c->batch != first.batch || c->image_size != first.image_size);
            cells.push_back(!is_there ? std::string(none)
                                      : config::format(c->rate) +
                                            (is_smaller ? fmt::format(" ({} x {})", c->batch, c->image_size) : ""));
        }
        table.add(std::move(cells));
    }
    return table.text("  ");
}

std::string bandwidth_text(Bandwidth rate, Bandwidth peak) {
    const std::string text = config::format(rate);
    return peak.value > 0 ? fmt::format("{} ({:.0f} %)", text, rate / peak * 100) : text;
}

config::Json gpu_json(const Gpu& gpu) {
    const gpu::GpuFacts& f = gpu.facts;
    config::Json json = config::Json::object();
    json.set("ordinal", f.ordinal);
    json.set("name", f.name);
    json.set("uuid", f.uuid);
    json.set("pci_bus_id", f.pci_bus_id);
    json.set("compute_capability", fmt::format("{}.{}", f.compute_major, f.compute_minor));
    json.set("sms", f.multiprocessors);
    json.set("memory_bytes", f.memory.value);
    json.set("free_bytes", f.free_memory.value > 0 ? config::Json(f.free_memory.value) : config::Json());
    json.set("memory_bandwidth",
             f.memory_bandwidth.value > 0 ? config::Json(f.memory_bandwidth.value) : config::Json());
    json.set("clock_hz", f.clock.value > 0 ? config::Json(f.clock.value) : config::Json());
    json.set("numa_node", f.numa_node >= 0 ? config::Json(f.numa_node) : config::Json());
    json.set("is_mig", f.is_mig);
    json.set("is_test_double", f.is_test_double);
    config::Json& pcie = json.set("pcie", config::Json());
    if (const auto& p = gpu.links.pcie) {
        pcie.set("generation", p->generation);
        pcie.set("lanes", p->lanes);
        pcie.set("most_generation", p->most_generation);
        pcie.set("most_lanes", p->most_lanes);
    }
    config::Json& nvlinks = json.set("nvlinks", config::Json::array());
    for (const gpu::NvLinkPeer& peer : gpu.links.nv_links) {
        config::Json& item = nvlinks.push(config::Json::object());
        item.set("to", peer.pci_bus_id.empty() ? config::Json("switches") : config::Json(peer.pci_bus_id));
        item.set("links", peer.links);
    }
    return json;
}

config::Json rates_json(const gpu::GpuFacts& facts, const machine::Device& device, const gpu::DeviceMeasurement& m) {
    config::Json json = config::Json::object();
    json.set("gpu", facts.ordinal);
    json.set("is_test_double", facts.is_test_double);
    config::Json& products = json.set("products", config::Json::array());
    for (const auto& p : m.products) {
        config::Json& item = products.push(config::Json::object());
        item.set("math", to_string(p.math));
        item.set("n", p.n);
        item.set("flops", p.rate.value);
        const auto peak = device.peak(p.math);
        item.set("share_of_peak", peak ? config::Json(p.rate / *peak) : config::Json());
        item.set("algorithm", p.algorithm);
    }
    config::Json& convolutions = json.set("convolutions", config::Json::array());
    for (const auto& c : m.convolutions) {
        config::Json& item = convolutions.push(config::Json::object());
        item.set("layer", c.name);
        item.set("pass", short_name(c.pass));
        item.set("math", to_string(c.math));
        item.set("batch", c.batch);
        item.set("image_size", c.image_size);
        item.set("flops", c.rate.value);
        item.set("algorithm", c.algorithm);
    }
    json.set("memory_copy", m.copy.value);
    json.set("memory_add", m.add.value);
    json.set("host_to_device", m.host_to_device.value);
    json.set("device_to_host", m.device_to_host.value);
    json.set("launch_s", m.launch.value);
    json.set("kernel_s", m.kernel.value);
    json.set("took_s", m.took.value);
    return json;
}

}  // namespace

std::string format_gpus(const std::vector<Gpu>& gpus) {
    return fmt::format("{}\n{}{}", facts_table(gpus), links_table(gpus), warnings(gpus));
}

std::string format_gpu_rates(const gpu::GpuFacts& facts, const machine::Device& device,
                             const gpu::DeviceMeasurement& m) {
    std::string text =
        facts.is_test_double
            ? fmt::format("Rates of GPU {}, a test double: of this host's CPU, no measurement of a GPU\n",
                          facts.ordinal)
            : fmt::format("Measured rates of GPU {} in {}\n", facts.ordinal, config::format(m.took));
    text += fmt::format("\nProducts of n x n matrices{}\n{}",
                        device.peaks.empty() ? " (no device file has this name, so no peaks are known)"
                                             : fmt::format(" (share of the dense peak of {})", device.name),
                        products_table(device, m));
    text += "\nMemory and copies\n";
    text += fmt::format("  copy in memory  {}, read and written\n", bandwidth_text(m.copy, device.memory_bandwidth));
    text += fmt::format("  c = a + b       {}, read and written\n", bandwidth_text(m.add, device.memory_bandwidth));
    text += fmt::format("  host to device  {}\n", bandwidth_text(m.host_to_device, device.pcie.per_direction));
    text += fmt::format("  device to host  {}\n", bandwidth_text(m.device_to_host, device.pcie.per_direction));
    text += fmt::format("\nA kernel takes the host {} to launch and the device {} at least\n", config::format(m.launch),
                        config::format(m.kernel));
    return text + "\nConvolutions of ResNet-50\n" + convolutions_table(m);
}

config::Json gpus_json(const std::vector<Gpu>& gpus, const machine::Device& device,
                       const gpu::DeviceMeasurement& measured) {
    config::Json json = config::Json::object();
    config::Json& list = json.set("gpus", config::Json::array());
    for (const Gpu& gpu : gpus) list.push(gpu_json(gpu));
    json.set("measured", gpus.empty() ? config::Json() : rates_json(gpus.front().facts, device, measured));
    return json;
}

}  // namespace lockstep::report
