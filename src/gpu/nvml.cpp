#include "gpu/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "gpu/nvml_library.hpp"

namespace lockstep::gpu {

using nvml::Device;
using nvml::Return;

namespace {

template <class F, class... Arguments>
Return call(F* function, Arguments... arguments) {
    return function ? function(arguments...) : Return::function_not_found;
}

// NVML writes a domain of 8 digits where CUDA and the system write 4: "00000000:3B:00.0".
std::string short_bus_id(std::string id) {
    std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) { return std::tolower(c); });
    return id.size() == 16 && id.starts_with("0000") ? id.substr(4) : id;
}

}  // namespace

step::DeviceSample NvmlDevice::sample(std::vector<std::string>* untold) const {
    const NvmlLibrary& l = *library_;
    const auto told = [&](const char* what, Return result) {
        if (result != Return::success && untold) untold->push_back(fmt::format("{}: {}", what, l.text(result)));
        return result == Return::success;
    };
    step::DeviceSample sample;
    unsigned value = 0;
    if (told("SM clock", call(l.clock, device_, nvml::Clock::sm, &value))) sample.sm_clock = Frequency{value * 1e6};
    if (told("memory clock", call(l.clock, device_, nvml::Clock::memory, &value)))
        sample.memory_clock = Frequency{value * 1e6};
    if (told("power", call(l.power, device_, &value))) sample.power = Watts{value * 1e-3};
    if (told("power limit", call(l.power_limit, device_, &value))) sample.power_limit = Watts{value * 1e-3};
    if (told("temperature", call(l.temperature, device_, nvml::Sensor::gpu, &value)))
        sample.temperature = static_cast<int>(value);
    unsigned long long reasons = 0;  // numbered as ThrottleReason
    if (told("throttle reasons", call(l.reasons, device_, &reasons))) sample.throttle = step::ThrottleReasons{reasons};
    return sample;
}

std::optional<Frequency> NvmlDevice::most_sm_clock() const {
    unsigned mhz = 0;
    if (call(library_->most_clock, device_, nvml::Clock::sm, &mhz) != Return::success) return std::nullopt;
    return Frequency{mhz * 1e6};
}

std::optional<PcieLink> NvmlDevice::pcie() const {
    unsigned generation = 0, lanes = 0, most_generation = 0, most_lanes = 0;
    if (call(library_->pcie_generation, device_, &generation) != Return::success ||
        call(library_->pcie_lanes, device_, &lanes) != Return::success ||
        call(library_->most_pcie_generation, device_, &most_generation) != Return::success ||
        call(library_->most_pcie_lanes, device_, &most_lanes) != Return::success)
        return std::nullopt;
    return PcieLink{static_cast<int>(generation), static_cast<int>(lanes), static_cast<int>(most_generation),
                    static_cast<int>(most_lanes)};
}

std::vector<NvLinkPeer> NvmlDevice::nv_links() const {
    std::map<std::string, int> links;  // by the peer's bus id
    for (unsigned link = 0; link < nvml::most_links; ++link) {
        nvml::Enable state = nvml::Enable::disabled;
        if (call(library_->link_state, device_, link, &state) != Return::success || state != nvml::Enable::enabled)
            continue;
        nvml::LinkPeer peer = nvml::LinkPeer::unknown;
        nvml::PciInfo pci{};
        call(library_->link_peer, device_, link, &peer);
        const bool to_gpu =
            peer != nvml::LinkPeer::nv_switch && call(library_->link_pci, device_, link, &pci) == Return::success;
        ++links[to_gpu ? short_bus_id(pci.bus_id) : ""];
    }
    std::vector<NvLinkPeer> result;
    for (const auto& [bus_id, count] : links) result.push_back({bus_id, count});
    return result;
}

std::optional<Bytes> NvmlDevice::free_memory() const {
    nvml::Memory memory{};
    if (call(library_->memory, device_, &memory) != Return::success) return std::nullopt;
    return Bytes{static_cast<double>(memory.free)};
}

bool NvmlDevice::has_mig_instances() const {
    unsigned current = 0, pending = 0;
    return call(library_->mig_mode, device_, &current, &pending) == Return::success && current == 1;
}

Nvml::Nvml() : library_(std::make_shared<NvmlLibrary>()) {}

const std::string& Nvml::absent() const { return library_->absent(); }

std::optional<std::string> Nvml::driver_version() const {
    char text[96] = "";
    if (!absent().empty() || call(library_->driver_version, text, unsigned{sizeof text}) != Return::success)
        return std::nullopt;
    return text;
}

std::optional<NvmlDevice> Nvml::device(const std::string& pci_bus_id, std::string& why) const {
    why = absent();
    if (!why.empty()) return std::nullopt;
    Device* device = nullptr;
    const Return result = call(library_->by_pci, pci_bus_id.c_str(), &device);
    if (result == Return::success) return NvmlDevice(library_, device);
    why = fmt::format("NVML about {}: {}", pci_bus_id, library_->text(result));
    return std::nullopt;
}

}  // namespace lockstep::gpu
