// What predictions at scale cost as whole processes: CPU seconds (one core) and memory of the program itself.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/figure.hpp"

namespace {

using namespace lockstep;

struct Cost {
    double cpu_seconds = 0;
    double megabytes = 0;
};

/// Runs the program once, its output thrown away. Throws when it fails.
Cost cost_of(const std::vector<std::string>& arguments) {
    std::vector<char*> argv{const_cast<char*>(LOCKSTEP_PROGRAM)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        if (std::freopen("/dev/null", "w", stdout) == nullptr || chdir(LOCKSTEP_SOURCE_DIR) != 0) _exit(1);
        execv(LOCKSTEP_PROGRAM, argv.data());
        _exit(127);
    }
    int status = 0;
    rusage use{};
    if (child < 0 || wait4(child, &status, 0, &use) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw std::runtime_error("lockstep " + arguments.front() + " failed");
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return {seconds(use.ru_utime) + seconds(use.ru_stime), static_cast<double>(use.ru_maxrss) / 1024};
}

/// The least of five: what else runs on the machine only adds.
Cost least_cost(const std::vector<std::string>& arguments) {
    Cost least = cost_of(arguments);
    for (int i = 0; i < 4; ++i) {
        const Cost cost = cost_of(arguments);
        least = {std::min(least.cpu_seconds, cost.cpu_seconds), std::min(least.megabytes, cost.megabytes)};
    }
    return least;
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    const std::vector<std::string> folded{"simulate", "experiments/all-reduce-4096.yaml"};
    auto unfolded = folded;
    unfolded.insert(unfolded.end(),
                    {"--every-rank", "--set", "machine.faults=[{node: 7, link: [gpu1, nvswitch0], rate: 0.5}]"});
    const std::vector<std::string> jitter{"simulate", "experiments/published/llama3-405b.yaml", "--set",
                                          "variation.jitter={distribution: lognormal, cv: 0.05}"};
    bench::register_figure("1 GiB all-reduce over 4096 GPUs", [folded]() -> bench::Figure {
        return {"cpu_s", least_cost(folded).cpu_seconds, 0.1};
    });
    bench::register_figure("1 GiB all-reduce over 4096 GPUs, memory", [folded]() -> bench::Figure {
        return {"MiB", least_cost(folded).megabytes, 50};
    });
    bench::register_figure("the same, every rank apart, one slow link", [unfolded]() -> bench::Figure {
        return {"cpu_s", least_cost(unfolded).cpu_seconds, 2};
    });
    bench::register_figure("405B on 16384 GPUs, jitter on every rank", [jitter]() -> bench::Figure {
        return {"cpu_s", least_cost(jitter).cpu_seconds, 3};
    });
    benchmark::RunSpecifiedBenchmarks();
}
