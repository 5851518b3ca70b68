// What the environment says about how this process was started, and the allocator settings that come before MPI.
#include <fmt/format.h>
#include <malloc.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "world/world.hpp"

namespace lockstep::world {
namespace {

// The value of a variable that holds a number of ranks; none when it is not set. Throws UsageError for anything else.
std::optional<int> ranks_in(const char* variable) {
    const char* text = std::getenv(variable);
    if (!text) return std::nullopt;
    const std::string_view value(text);
    int ranks = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ranks);
    if (error != std::errc{} || end != value.data() + value.size() || ranks < 1)
        throw UsageError(fmt::format("{}={} is no number of ranks (set by something else than a launcher?); unset it",
                                     variable, value));
    return ranks;
}

// The rank a variable announces; 0 when it says nothing usable (it only decides who speaks).
int rank_in(const char* variable) {
    const char* text = std::getenv(variable);
    int rank = 0;
    if (text) std::from_chars(text, text + std::string_view(text).size(), rank);
    return rank;
}

}  // namespace

Launcher detect_launcher() {
    if (const auto size = ranks_in("OMPI_COMM_WORLD_SIZE"))
        return {Launcher::Kind::mpi, "mpirun", *size, rank_in("OMPI_COMM_WORLD_RANK")};
    if (std::getenv("PMIX_RANK")) {
        for (const char* variable : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
            if (const auto size = ranks_in(variable))
                return {Launcher::Kind::mpi, "srun (pmix)", *size, rank_in("PMIX_RANK")};
        throw UsageError(
            "PMIX_RANK is set but no variable tells the number of ranks (an unknown launcher); "
            "start with mpirun or srun --mpi=pmix");
    }
    const auto tasks = ranks_in("SLURM_STEP_NUM_TASKS");
    if (tasks && *tasks > 1 && std::getenv("SLURM_PROCID"))
        throw UsageError(fmt::format(
            "a Slurm step of {} tasks gives its ranks no way to find one another (srun was started without PMIx); "
            "use srun --mpi=pmix",
            *tasks));
    return {};
}

void keep_large_blocks() {
    constexpr int one_gib = 1 << 30;
    constexpr int at_a_time = 256 << 20;
    if (mallopt(M_MMAP_THRESHOLD, one_gib) != 1 || mallopt(M_TRIM_THRESHOLD, one_gib) != 1 ||
        mallopt(M_TOP_PAD, at_a_time) != 1)
        throw RuntimeError("the C library refuses the allocator settings (not glibc?); lockstep needs glibc's malloc");
}

}  // namespace lockstep::world
