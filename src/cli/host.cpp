#include "cli/host.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "base/error.hpp"
#include "cpu/host_benchmark.hpp"
#include "world/agree.hpp"

namespace lockstep::cli {

namespace {

std::optional<machine::HostRates> kept_rates(const machine::HostStructure& structure, int threads, int ranks) {
    const auto rates = machine::read_host_rates(machine::host_rates_file(structure));
    if (!rates || rates->threads_per_rank != threads) return std::nullopt;
    if (ranks > 1 && rates->measured_ranks < 2) return std::nullopt;
    return rates;
}

std::string utc_text() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// Runs a program with its output thrown away; its exit status, or 127 when it can't be started.
int run_quietly(const std::vector<std::string>& command) {
    const pid_t child = fork();
    if (child < 0) return 127;
    if (child == 0) {
        if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
        std::vector<char*> arguments;
        for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

int threads_per_rank(const machine::HostStructure& structure, int requested, const std::vector<int>& ranks) {
    if (requested > 0) return requested;
    int most = 1;
    for (const int n : ranks)
        if (n <= structure.cores) most = std::max(most, n);
    return std::max(1, structure.cores / most);
}

machine::HostRates measure_host(world::World& world, const machine::HostStructure& structure, int threads) {
    const cpu::HostMeasurement measured = cpu::measure_host(world, threads);
    machine::HostRates rates;
    rates.threads_per_rank = threads;
    rates.measured_ranks = world.local_size();
    rates.gemm_fp32 = measured.gemm_fp32;
    rates.gemm_bf16 = measured.gemm_bf16;
    rates.convolution_share = measured.convolution_share;
    rates.attention_share = measured.attention_share;
    rates.memory = measured.memory;
    rates.op_overhead = measured.op_overhead;
    rates.all_reduce_bus = measured.all_reduce_bus;
    rates.all_reduce_latency = measured.all_reduce_latency;
    rates.compute_slowdown = measured.compute_slowdown;
    rates.when = utc_text();
    rates.how = fmt::format("lockstep machine detect, {} rank{} of {} thread{}, {:.1f} s", world.local_size(),
                            world.local_size() == 1 ? "" : "s", threads, threads == 1 ? "" : "s", measured.took.value);
    world::agree(world, [&] {
        if (world.rank() == 0) machine::write_host_rates(rates, structure, machine::host_rates_file(structure));
    });
    return rates;
}

machine::HostRates rates_for_run(world::World& world, const machine::HostStructure& structure, int threads) {
    std::optional<machine::HostRates> kept;
    world::agree(world, [&] { kept = kept_rates(structure, threads, world.size()); });
    const int have = world::count_true(world, kept.has_value());
    return have == world.size() ? *kept : measure_host(world, structure, threads);
}

machine::HostRates rates_for_prediction(const machine::HostStructure& structure, int threads, int ranks) {
    if (const auto kept = kept_rates(structure, threads, ranks)) return *kept;
    const int measured_ranks = ranks > 1 ? 2 : 1;
    std::vector<std::string> command = {"mpirun",
                                        "--bind-to",
                                        "none",
                                        "--oversubscribe",
                                        "--mca",
                                        "mpi_yield_when_idle",
                                        "1",
                                        "-n",
                                        std::to_string(measured_ranks),
                                        own_path(),
                                        "machine",
                                        "detect",
                                        "--threads",
                                        std::to_string(threads),
                                        "--quiet"};
    if (geteuid() == 0) command.insert(command.begin() + 1, "--allow-run-as-root");
    const int status = run_quietly(command);
    if (const auto kept = kept_rates(structure, threads, ranks)) return *kept;
    throw RuntimeError(
        fmt::format("this host's rates are not measured yet, and measuring them failed (mpirun ended with {}); run "
                    "'mpirun -n {} lockstep "
                    "machine detect --threads {}'",
                    status, measured_ranks, threads));
}

}  // namespace lockstep::cli
