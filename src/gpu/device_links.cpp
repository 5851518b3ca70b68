#include "gpu/device_links.hpp"

#include <algorithm>
#include <cctype>

#include "gpu/nvml.hpp"

namespace lockstep::gpu {
namespace {

/// "0000:3b:00.0"
bool is_pci_bus_id(const std::string& name) {
    constexpr std::string_view form = "xxxx:xx:xx.x";
    return name.size() == form.size() && std::equal(name.begin(), name.end(), form.begin(), [](char c, char f) {
               return f == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == f;
           });
}

}  // namespace

std::vector<std::string> pci_bridges(const std::string& pci_bus_id, const std::filesystem::path& devices) {
    std::error_code none;
    // A device's folder lies in that of the bridge above it.
    const std::filesystem::path folder = std::filesystem::canonical(devices / pci_bus_id, none);
    std::vector<std::string> bridges;
    if (none) return bridges;
    for (const auto& part : folder.parent_path())
        if (is_pci_bus_id(part.string())) bridges.push_back(part.string());
    std::reverse(bridges.begin(), bridges.end());
    return bridges;
}

GpuLinks links_of(const std::string& pci_bus_id) {
    GpuLinks links;
    links.bridges = pci_bridges(pci_bus_id);
    if (const auto device = Nvml().device(pci_bus_id, links.untold)) {
        links.pcie = device->pcie();
        links.nv_links = device->nv_links();
    }
    return links;
}

}  // namespace lockstep::gpu
