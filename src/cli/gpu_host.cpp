#include "cli/gpu_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/backends.hpp"
#include "machine/gpu_host.hpp"
#include "machine/host_probe.hpp"
#include "machine/machine_file.hpp"

namespace lockstep::cli {

namespace {

machine::GpuPlace place_of(const report::Gpu& gpu) {
    machine::GpuPlace place;
    place.pci_bus_id = gpu.facts.pci_bus_id;
    place.numa_node = gpu.facts.numa_node;
    place.bridges = gpu.links.bridges;
    if (gpu.links.pcie) {
        place.pcie_generation = gpu.links.pcie->most_generation;
        place.pcie_lanes = gpu.links.pcie->lanes;  // fewer than possible stay fewer; a generation rises under load
    }
    for (const gpu::NvLinkPeer& peer : gpu.links.nv_links)
        if (peer.pci_bus_id.empty())
            place.switch_links += peer.links;
        else
            place.peers.push_back({peer.pci_bus_id, peer.links});
    return place;
}

}  // namespace

std::vector<report::Gpu> detect_gpus(gpu::Backend& backend) {
    std::vector<report::Gpu> gpus;
    for (gpu::GpuFacts& facts : backend.devices()) {
        gpu::GpuLinks links = backend.links(facts.ordinal);
        gpus.push_back({std::move(facts), std::move(links)});
    }
    return gpus;
}

machine::Machine detected_machine(const std::vector<report::Gpu>& gpus) {
    const gpu::GpuFacts& first = gpus.at(0).facts;
    std::vector<machine::GpuPlace> places;
    for (const report::Gpu& gpu : gpus) places.push_back(place_of(gpu));
    machine::Machine machine = machine::make_gpu_node(device_of(first), places);
    machine.name = "gpus";
    machine.title = fmt::format("{} ({} x {})", machine::read_host_structure().host_name, gpus.size(), first.name);
    machine.calibration = machine::calibration_of(config::DataPath{}, machine.device);
    machine.sources = {"structure: the NVIDIA driver (NVML) and sysfs"};
    if (std::ranges::any_of(gpus, [&](const report::Gpu& gpu) { return gpu.facts.name != first.name; }))
        machine.notes.push_back(fmt::format("the GPUs are not all alike; they are taken for {}", first.name));
    return machine;
}

}  // namespace lockstep::cli
