#include "cli/version.hpp"

#include <fmt/format.h>

#include "cli/backends.hpp"
#include "cpu/isa.hpp"
#include "record/run_description.hpp"
#include "world/world.hpp"

namespace lockstep::cli {

std::map<std::string, std::string> versions() {
    return {{"lockstep", LOCKSTEP_VERSION},
            {"compiler", fmt::format("g++ {}", __VERSION__)},
            {"mpi", world::MpiSession::library_version()},
            {"onednn", cpu::library_version()},
            {"hdf5", record::library_version()}};
}

std::string version_text() {
    std::string text = fmt::format("lockstep {}\n", LOCKSTEP_VERSION);
    for (const auto& [name, version] : versions())
        if (name != "lockstep") text += fmt::format("  {:<10}{}\n", name, version);
    const LoadedGpu gpu = load_gpu();
    return text + fmt::format("  {:<10}{}\n", "gpu", gpu.backend != nullptr ? gpu.backend->versions() : gpu.why_not);
}

}  // namespace lockstep::cli
