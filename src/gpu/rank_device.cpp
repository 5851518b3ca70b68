#include "gpu/rank_device.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "base/error.hpp"
#include "world/agree.hpp"

namespace lockstep::gpu {
namespace {

/// What the ranks tell one another of a GPU.
struct SeenGpu {
    std::string key;  ///< equal for the same GPU, whatever the ranks call their hosts
    std::string pci_bus_id, name;
    bool is_mig = false;
};
struct SeenByRank {
    std::string host;
    std::vector<SeenGpu> gpus;
};

std::string written(const std::string& host, const std::vector<GpuFacts>& visible) {
    std::string text = host + '\n';
    for (const GpuFacts& gpu : visible)
        text += fmt::format("{}\t{}\t{}\t{}\n",
                            // A test double's GPUs have the same UUIDs on every host.
                            gpu.is_test_double ? gpu.uuid + " on " + host : gpu.uuid, gpu.pci_bus_id, gpu.name,
                            gpu.is_mig ? 1 : 0);
    return text;
}

SeenByRank read(const std::string& text) {
    SeenByRank seen;
    std::istringstream lines(text);
    std::getline(lines, seen.host);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        SeenGpu gpu;
        std::getline(fields, gpu.key, '\t');
        std::getline(fields, gpu.pci_bus_id, '\t');
        std::getline(fields, gpu.name, '\t');
        fields >> gpu.is_mig;
        seen.gpus.push_back(gpu);
    }
    return seen;
}

[[noreturn]] void throw_mig(int rank, const std::string& host, const SeenGpu& gpu) {
    throw RuntimeError(
        fmt::format("rank {} on {} uses a MIG instance of GPU {} ({}), and NCCL doesn't connect instances; turn MIG "
                    "off (nvidia-smi -mig 0), or run one rank",
                    rank, host, gpu.pci_bus_id, gpu.name));
}

[[noreturn]] void throw_taken(int rank, const SeenByRank& seen, const std::map<std::string, int>& taken) {
    if (seen.gpus.empty())
        throw RuntimeError(
            fmt::format("rank {} on {} sees no GPU; let it see one (CUDA_VISIBLE_DEVICES, srun "
                        "--gpus-per-task=1), or use --backend cpu",
                        rank, seen.host));
    std::vector<std::string> owners;
    for (const SeenGpu& gpu : seen.gpus)
        owners.push_back(fmt::format("{} ({}) by rank {}", gpu.pci_bus_id, gpu.name, taken.at(gpu.key)));
    throw RuntimeError(
        fmt::format("rank {} on {} has no GPU of its own: of those it sees, {}; start one rank per GPU (mpirun "
                    "--map-by ppr:N:node, srun --ntasks-per-node=N), or let each rank see another (srun "
                    "--gpus-per-task=1, CUDA_VISIBLE_DEVICES)",
                    rank, seen.host,
                    owners.size() == 1 ? "the only one is taken: " + owners.front()
                                       : fmt::format("all {} are taken: {}", owners.size(), fmt::join(owners, ", "))));
}

}  // namespace

int choose_device(world::World& world, const std::vector<GpuFacts>& visible) {
    std::vector<SeenByRank> ranks;
    for (const std::string& text : world::all_gather_strings(world, written(world.host(), visible)))
        ranks.push_back(read(text));
    // Every rank works it out for all of them, so that all come to the same end.
    std::map<std::string, int> taken;  // by GPU, the rank
    int own = -1;
    for (int rank = 0; rank < world.size(); ++rank) {
        const SeenByRank& seen = ranks[static_cast<std::size_t>(rank)];
        std::size_t ordinal = 0;
        while (ordinal < seen.gpus.size() && !taken.emplace(seen.gpus[ordinal].key, rank).second) ++ordinal;
        if (ordinal == seen.gpus.size()) throw_taken(rank, seen, taken);
        if (world.size() > 1 && seen.gpus[ordinal].is_mig) throw_mig(rank, seen.host, seen.gpus[ordinal]);
        if (rank == world.rank()) own = static_cast<int>(ordinal);
    }
    return own;
}

}  // namespace lockstep::gpu
