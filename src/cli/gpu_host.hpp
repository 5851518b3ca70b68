// The GPUs of this host: what they are, and the machine they make.
#pragma once

#include <vector>

#include "machine/machine.hpp"
#include "report/gpu_tables.hpp"

namespace lockstep::cli {

/// The visible GPUs with their links. Throws RuntimeError that says what is missing: the module, a driver, a device.
std::vector<report::Gpu> detect_gpus(gpu::Backend& backend);

/// The node that they make, with the constants of their kind's calibration: nothing is measured. At least one GPU.
machine::Machine detected_machine(const std::vector<report::Gpu>& gpus);

}  // namespace lockstep::cli
