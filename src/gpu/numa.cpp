#include "gpu/numa.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace lockstep::gpu {
namespace {

// Whether a core of "0-3,8" is in the set.
bool has_core_of(const std::string& list, const cpu_set_t& allowed) {
    std::istringstream ranges(list);
    for (std::string range; std::getline(ranges, range, ',');) {
        int first = 0, last = 0;
        char dash = 0;
        std::istringstream text(range);
        if (!(text >> first)) continue;
        if (!(text >> dash >> last)) last = first;
        for (int core = first; core <= last; ++core)
            if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) return true;
    }
    return false;
}

}  // namespace

std::vector<int> allowed_numa_nodes(const std::filesystem::path& nodes) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
    std::vector<int> result;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(nodes, none)) {
        const std::string name = entry.path().filename().string();
        int node = 0;
        if (!name.starts_with("node") ||
            std::from_chars(name.data() + 4, name.data() + name.size(), node).ec != std::errc{})
            continue;
        std::ifstream file(entry.path() / "cpulist");
        std::string list;
        if (std::getline(file, list) && has_core_of(list, allowed)) result.push_back(node);
    }
    std::sort(result.begin(), result.end());
    return result;
}

std::string numa_warning(const GpuFacts& gpu, const std::vector<int>& nodes) {
    if (gpu.numa_node < 0 || nodes.empty() || std::find(nodes.begin(), nodes.end(), gpu.numa_node) != nodes.end())
        return {};
    return fmt::format(
        "this rank's cores are on NUMA node {} and its GPU {} is on node {}, so launches and copies cross between "
        "sockets; bind it with numactl --cpunodebind={}, mpirun --map-by numa or srun --gpu-bind=closest",
        fmt::join(nodes, ", "), gpu.pci_bus_id, gpu.numa_node, gpu.numa_node);
}

}  // namespace lockstep::gpu
