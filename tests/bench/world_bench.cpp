// World::all_reduce and the progressed start_all_reduce against plain MPI_Allreduce: one JSON line per figure on rank
// 0.
//
// Run it as `mpirun -n 2 --bind-to none bench_world`. A sample is the time on rank 0 from one barrier to the next; the
// contenders take turns in every round, because a shared machine drifts, and the median over the rounds of the ratio of
// neighbours is printed.
#define OMPI_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace {

using namespace lockstep::world;
using Action = std::function<void()>;

constexpr int rounds = 31;
constexpr int warm_up = 5;

double seconds_of(World& world, int repeats, const Action& action) {
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) action();
    world.barrier();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

struct Samples {
    std::vector<double> base, other;
    double ratio() const {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < base.size(); ++i) ratios.push_back(other[i] / base[i]);
        return median(ratios);
    }
};

// Which of the pair goes first changes from round to round.
Samples interleave(World& world, int repeats, const Action& base, const Action& other) {
    Samples samples;
    for (int round = 0; round < warm_up + rounds; ++round) {
        double a = 0, b = 0;
        if (round % 2 == 0) {
            a = seconds_of(world, repeats, base);
            b = seconds_of(world, repeats, other);
        } else {
            b = seconds_of(world, repeats, other);
            a = seconds_of(world, repeats, base);
        }
        if (round < warm_up) continue;
        samples.base.push_back(a);
        samples.other.push_back(b);
    }
    return samples;
}

void report(const World& world, const std::string& name, int mib, const Samples& samples, double limit) {
    if (world.rank() != 0) return;
    fmt::print(
        "{{\"bench\": \"{}_{}MiB_{}ranks\", \"ratio\": {:.3f}, \"limit\": {}, \"base_ms\": {:.3f}, \"ms\": {:.3f}}}\n",
        name, mib, world.size(), samples.ratio(), limit, 1e3 * median(samples.base), 1e3 * median(samples.other));
    std::fflush(stdout);
}

void measure(World& world, int mib, int repeats) {
    std::vector<float> data(static_cast<std::size_t>(mib) * 1024 * 1024 / sizeof(float));
    const auto bytes = std::as_writable_bytes(std::span{data});
    const Action plain = [&] {
        MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    const Action blocking = [&] { world.all_reduce(bytes, Number::f32, Reduce::sum); };
    const Action progressed = [&] {
        const auto request = world.start_all_reduce(bytes, Number::f32, Reduce::sum);
        while (!request->test()) {}
    };
    report(world, "all_reduce", mib, interleave(world, repeats, plain, blocking), 1.05);
    report(world, "start_all_reduce", mib, interleave(world, repeats, plain, progressed), 1.3);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        MpiSession session(argc, argv);
        const auto world = session.world();
        measure(*world, 4, 10);
        measure(*world, 100, 1);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
