#include "cli/backends.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "cpu/cpu_executor.hpp"
#include "machine/catalog.hpp"
#include "machine/host_probe.hpp"
#include "world/agree.hpp"

namespace lockstep::cli {

namespace {

std::filesystem::path module_file() {
    const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::filesystem::path beside = here / "lockstep_gpu.so";
    return std::filesystem::exists(beside) ? beside : here.parent_path() / "lib" / "lockstep" / "lockstep_gpu.so";
}

/// The first rank's reason, on all ranks.
std::string first_reason(world::World& world, const std::string& mine) {
    std::int32_t first = mine.empty() ? world.size() : world.rank();
    world.all_reduce(std::as_writable_bytes(std::span(&first, 1)), world::Number::i32, world::Reduce::min);
    if (first == world.size()) return {};
    return world::broadcast_string(world, mine, first);
}

RunDevice cpu_device() {
    RunDevice device;
    device.cpu_model = machine::read_host_structure().cpu_model;
    return device;
}

}  // namespace

BackendChoice parse_backend(const std::string& name) {
    if (name == "auto") return BackendChoice::automatic;
    if (name == "cpu") return BackendChoice::cpu;
    if (name == "gpu") return BackendChoice::gpu;
    throw UsageError(fmt::format("--backend wants auto, gpu or cpu, got '{}'", name));
}

LoadedGpu load_gpu() {
    const std::filesystem::path file = module_file();
    if (!std::filesystem::exists(file))
        return {nullptr,
                "this build has no GPU executor (the CUDA toolkit, cuDNN or NCCL was missing when it was configured); "
                "install them and build again, use --backend cpu, or 'lockstep simulate' for GPUs"};
    // Never closed: CUDA's libraries keep threads and exit handlers.
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return {nullptr, fmt::format("the GPU executor can't be loaded ({}); put the CUDA libraries it was built with "
                                     "into LD_LIBRARY_PATH, or use --backend cpu",
                                     dlerror())};
    const auto make = reinterpret_cast<gpu::BackendFunction>(dlsym(handle, gpu::backend_symbol));
    if (make == nullptr)
        return {nullptr, fmt::format("{} is no GPU executor of this version; build again", file.string())};
    return {make(), {}};
}

VisibleGpus visible_gpus(const LoadedGpu& loaded) {
    if (loaded.backend == nullptr) return {{}, loaded.why_not};
    try {
        return {loaded.backend->devices(), {}};
    } catch (const RuntimeError& error) { return {{}, error.what()}; }
}

RunDevice choose_run_device(world::World& world, BackendChoice choice) {
    if (choice == BackendChoice::cpu) return cpu_device();
    const LoadedGpu loaded = load_gpu();
    const VisibleGpus visible = visible_gpus(loaded);
    const std::string why_not = first_reason(world, visible.why_not);
    if (!why_not.empty()) {
        if (choice == BackendChoice::gpu) throw RuntimeError(why_not);
        RunDevice device = cpu_device();
        device.notice = fmt::format("runs on the CPU: {}", why_not);
        return device;
    }
    RunDevice device;
    device.kind = machine::DeviceKind::gpu;
    device.backend = loaded.backend;
    const int ordinal = loaded.backend->choose_device(world);
    device.facts = visible.devices.at(static_cast<std::size_t>(ordinal));
    device.notice = loaded.backend->binding_warning(ordinal);
    return device;
}

std::unique_ptr<step::Executor> make_executor(world::World& world, const RunDevice& device,
                                              const ExecutorRequest& request) {
    if (device.kind == machine::DeviceKind::gpu)
        return device.backend->executor(world, {.device = device.facts.ordinal,
                                                .epoch = request.epoch,
                                                .timeout = request.timeout,
                                                .record_every = request.record_every});
    return std::make_unique<cpu::CpuExecutor>(
        world, cpu::CpuOptions{.threads = device.threads, .epoch = request.epoch, .cpu_model = device.cpu_model});
}

machine::Device device_of(const gpu::GpuFacts& facts) {
    const config::DataPath data;
    for (const std::string& name : machine::device_names(data)) {
        machine::Device device = machine::load_device(data, name);
        for (const std::string& known : device.driver_names)
            if (known == facts.name) return device;
    }
    machine::Device device;
    device.name = device.title = facts.name;
    device.compute_capability = fmt::format("{}.{}", facts.compute_major, facts.compute_minor);
    device.memory = facts.memory;
    device.memory_bandwidth = facts.memory_bandwidth;
    device.l2 = facts.l2_cache;
    device.sms = facts.multiprocessors;
    device.sources = {
        "what the CUDA driver tells of it; no device file in topology/devices has this driver name, so its peak "
        "rates are not known"};
    return device;
}

machine::Machine gpu_host_machine(const gpu::GpuFacts& facts, int gpus) {
    machine::Machine machine;
    machine.name = "host";
    machine.device = device_of(facts);
    machine.title = fmt::format("{} ({} x {})", machine::read_host_structure().host_name, gpus, facts.name);
    for (int i = 0; i < gpus; ++i)
        machine.node.vertices.push_back({machine::VertexKind::gpu, fmt::format("gpu{}", i), i, -1});
    machine.sources = machine.device.sources;
    return machine;
}

}  // namespace lockstep::cli
