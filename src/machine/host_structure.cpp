#include <fmt/format.h>
#include <hwloc.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/error.hpp"
#include "machine/host_probe.hpp"

namespace lockstep::machine {

namespace {

struct TopologyDeleter {
    void operator()(hwloc_topology* t) const { hwloc_topology_destroy(t); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
    void operator()(hwloc_bitmap_s* b) const { hwloc_bitmap_free(b); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

/// Everything in the machine, whether this process may use it or not.
HwlocTopology load_hwloc() {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw RuntimeError("hwloc can't start; check its installation");
    HwlocTopology topology(raw);
    hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(raw) != 0) throw RuntimeError("hwloc can't read this machine; check /sys and /proc");
    return topology;
}

/// What the administrator (cgroup) and the launcher (binding of this process) both allow.
Bitmap allowed_cpus(hwloc_topology_t topology) {
    Bitmap allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
    const Bitmap bound(hwloc_bitmap_alloc());
    if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_bitmap_and(allowed.get(), allowed.get(), bound.get());
    return allowed;
}

int count_allowed_cores(hwloc_topology_t topology) {
    const Bitmap allowed = allowed_cpus(topology);
    int count = 0;
    for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;)
        count += hwloc_bitmap_intersects(core->cpuset, allowed.get()) != 0 ? 1 : 0;
    return count > 0 ? count : hwloc_bitmap_weight(allowed.get());
}

Bytes cache_size(hwloc_topology_t topology, hwloc_obj_type_t type) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
    return cache == nullptr ? Bytes{} : Bytes{static_cast<double>(cache->attr->cache.size)};
}

/// Caches of one kind in one socket, added up.
Bytes cache_of_socket(hwloc_topology_t topology, hwloc_obj_type_t type) {
    const int sockets = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
    Bytes total;
    for (hwloc_obj_t c = nullptr; (c = hwloc_get_next_obj_by_type(topology, type, c)) != nullptr;)
        total += Bytes{static_cast<double>(c->attr->cache.size)};
    return total / sockets;
}

/// The value after the colon of the first line of /proc/cpuinfo that starts with `key`; "" when there is none.
std::string cpuinfo(std::string_view key) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key)) continue;
        const auto start = line.find_first_not_of(" \t", line.find(':') + 1);
        return start == std::string::npos ? "" : line.substr(start);
    }
    return "";
}

bool has_flag(const std::string& flags, std::string_view wanted) {
    std::istringstream words(flags);
    for (std::string word; words >> word;)
        if (word == wanted) return true;
    return false;
}

/// The widest vector or matrix extension, widest first.
std::string isa_of(const std::string& flags) {
    struct Extension {
        std::string_view flag, name;
    };
    constexpr std::array extensions{Extension{"amx_bf16", "amx"},   Extension{"avx512_bf16", "avx512_bf16"},
                                    Extension{"avx512f", "avx512"}, Extension{"avx2", "avx2"},
                                    Extension{"avx", "avx"},        Extension{"sve", "sve"},
                                    Extension{"asimd", "neon"},     Extension{"sse4_2", "sse4_2"}};
    for (const auto& [flag, name] : extensions)
        if (has_flag(flags, flag)) return std::string(name);
    return "scalar";
}

std::string read_host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw RuntimeError("this machine has no host name; set one");
    return name.data();
}

}  // namespace

HostStructure read_host_structure() {
    const HwlocTopology topology = load_hwloc();
    const std::string flags = cpuinfo("flags") + " " + cpuinfo("Features");
    const hwloc_obj_t package = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, 0);
    const char* const model = package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
    HostStructure host;
    host.host_name = read_host_name();
    host.cpu_model = model != nullptr ? model : cpuinfo("model name");
    if (host.cpu_model.empty()) host.cpu_model = "unknown CPU";
    host.cores = std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE));
    host.allowed_cores = std::max(1, count_allowed_cores(topology.get()));
    host.numa_nodes = std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE));
    host.sockets = std::max(1, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PACKAGE));
    host.memory = Bytes{static_cast<double>(hwloc_get_root_obj(topology.get())->total_memory)};
    host.l2 = cache_size(topology.get(), HWLOC_OBJ_L2CACHE);
    host.l3 = cache_of_socket(topology.get(), HWLOC_OBJ_L3CACHE);
    host.isa = isa_of(flags);
    host.has_native_bf16 = has_flag(flags, "amx_bf16") || has_flag(flags, "avx512_bf16") || has_flag(flags, "bf16");
    return host;
}

}  // namespace lockstep::machine
