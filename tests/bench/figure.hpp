// A Google Benchmark that measures one figure with a limit: interleaved pairs or repeats are inside, one iteration is
// the whole measurement.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

namespace lockstep::bench {

/// A ratio or a time must be at most its limit, a rate (named "..._per_second") at least.
struct Figure {
    std::string name;  ///< "ratio", "median_us", "events_per_second"
    double value = 0;
    double limit = 0;
};

/// The figure and its limit become counters of the benchmark; tests/bench/table.py reads them.
inline void register_figure(const std::string& title, std::function<Figure()> measure) {
    const auto run = [measure](benchmark::State& state) {
        Figure figure;
        for ([[maybe_unused]] auto _ : state) figure = measure();
        state.counters[figure.name] = figure.value;
        state.counters["limit"] = figure.limit;
    };
    benchmark::RegisterBenchmark(title.c_str(), run)->Iterations(1)->Unit(benchmark::kMillisecond);
}

}  // namespace lockstep::bench
