// lockstep device list, show and detect.
#include <fmt/format.h>

#include "cli/backends.hpp"
#include "cli/command.hpp"
#include "cli/gpu_host.hpp"
#include "machine/catalog.hpp"
#include "report/gpu_tables.hpp"
#include "report/machine_tables.hpp"

namespace lockstep::cli {

namespace {

ExitCode list_devices(const Parsed& parsed) {
    const config::DataPath data;
    std::vector<machine::Device> devices;
    for (const auto& name : machine::device_names(data)) devices.push_back(machine::load_device(data, name));
    if (parsed.globals.json)
        fmt::print("{}\n", report::device_list_json(devices).dump());
    else
        fmt::print("{}", report::format_device_list(devices));
    return ExitCode::ok;
}

ExitCode show_device(const Parsed& parsed) {
    const machine::Device device = machine::load_device(config::DataPath{}, parsed.words[0]);
    if (parsed.globals.json)
        fmt::print("{}\n", report::device_json(device).dump());
    else
        fmt::print("{}", report::format_device(device));
    return ExitCode::ok;
}

ExitCode detect_devices(const Parsed& parsed) {
    const LoadedGpu loaded = load_gpu();
    if (loaded.backend == nullptr) throw RuntimeError(loaded.why_not);
    const gpu::GpuFacts first = loaded.backend->devices().at(0);
    const machine::Device device = device_of(first);
    const gpu::DeviceMeasurement measured = loaded.backend->measure(first.ordinal);
    const auto gpus = detect_gpus(*loaded.backend);  // afterwards: an idle GPU lowers its PCIe link
    if (parsed.globals.json)
        fmt::print("{}\n", report::gpus_json(gpus, device, measured).dump());
    else
        fmt::print("{}\n{}", report::format_gpus(gpus), report::format_gpu_rates(first, device, measured));
    return ExitCode::ok;
}

}  // namespace

Command device_list_command() {
    return {"device list",
            {.usage = "device list", .about = "the devices that are described", .options = {}},
            list_devices};
}

Command device_show_command() {
    return {"device show",
            {.usage = "device show NAME",
             .about = "rates, memory, links, price and sources of a device",
             .options = {},
             .least_words = 1,
             .most_words = 1},
            show_device};
}

Command device_detect_command() {
    return {"device detect",
            {.usage = "device detect", .about = "the GPUs of this host, their links and measured rates", .options = {}},
            detect_devices};
}

}  // namespace lockstep::cli
