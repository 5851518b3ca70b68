// GPUs of this host and what they can do, as tables for the terminal and as JSON.
#pragma once

#include <string>
#include <vector>

#include "config/json.hpp"
#include "gpu/backend.hpp"
#include "machine/device.hpp"

namespace lockstep::report {

struct Gpu {
    gpu::GpuFacts facts;
    gpu::GpuLinks links;
};

/// What each GPU is, and how it is linked, with a warning where a PCIe link is below what is possible. At most 100
/// columns.
std::string format_gpus(const std::vector<Gpu>& gpus);

/// The measured rates of one GPU beside the peaks of `device`, where those are known: products by size and math type,
/// memory, copies, launches, convolutions. Of a test double it says that nothing was measured. At most 100 columns.
std::string format_gpu_rates(const gpu::GpuFacts& facts, const machine::Device& device,
                             const gpu::DeviceMeasurement& measured);

/// Both: {"gpus": [{"ordinal", "name", "uuid", "pci_bus_id", ..., "pcie": {...} or null, "nvlinks": [...]}],
/// "measured": {"gpu", "is_test_double", "products": [...], ...}}; rates in bytes or operations a second.
config::Json gpus_json(const std::vector<Gpu>& gpus, const machine::Device& device,
                       const gpu::DeviceMeasurement& measured);

}  // namespace lockstep::report
