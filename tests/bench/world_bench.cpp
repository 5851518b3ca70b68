// World::all_reduce and the progressed start_all_reduce against plain MPI_Allreduce.
//
// Run it as `mpirun -n 2 --bind-to none world_bench`. A sample is the time on rank 0 from one barrier to the next; the
// contenders take turns in every round, because a shared machine drifts, and the median over the rounds of the ratio of
// neighbours is the figure.
#define OMPI_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/figure.hpp"
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

void register_pairs(World& world, int mib, int repeats) {
    const auto data = std::make_shared<std::vector<float>>(static_cast<std::size_t>(mib) * 1024 * 1024 / sizeof(float));
    const auto bytes = std::as_writable_bytes(std::span{*data});
    const Action plain = [data] {
        MPI_Allreduce(MPI_IN_PLACE, data->data(), static_cast<int>(data->size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    const Action blocking = [&world, data, bytes] { world.all_reduce(bytes, Number::f32, Reduce::sum); };
    const Action progressed = [&world, data, bytes] {
        const auto request = world.start_all_reduce(bytes, Number::f32, Reduce::sum);
        while (!request->test()) {}
    };
    const auto add = [&](const char* name, const Action& other, double limit) {
        lockstep::bench::register_figure(
            fmt::format("{} over plain MPI_Allreduce, {} MiB, {} ranks", name, mib, world.size()),
            [&world, repeats, plain, other, limit]() -> lockstep::bench::Figure {
                return {"ratio", interleave(world, repeats, plain, other).ratio(), limit};
            });
    };
    add("World all_reduce", blocking, 1.05);
    add("progressed start_all_reduce", progressed, 1.3);
}

/// For all ranks but one: the figures are theirs too, the printing is rank 0's.
class Silent final : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>&) override {}
};

}  // namespace

int main(int argc, char** argv) {
    try {
        MpiSession session(argc, argv);
        const auto world = session.world();
        benchmark::Initialize(&argc, argv);
        register_pairs(*world, 4, 10);
        register_pairs(*world, 100, 1);
        Silent silent;
        if (world->rank() == 0)
            benchmark::RunSpecifiedBenchmarks();
        else
            benchmark::RunSpecifiedBenchmarks(&silent);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
