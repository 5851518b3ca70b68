// What analysis found in one run or a series of runs; knows nothing of how it is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/collective.hpp"
#include "analysis/goodput.hpp"
#include "base/units.hpp"
#include "record/run_description.hpp"
#include "step/liveness.hpp"

namespace lockstep::analysis {

/// Over the counted steps (warm-up left out) of the critical rank.
struct StepTime {
    Seconds median, p95, p99;
    Seconds interval80_low,
        interval80_high;  ///< of the median, by bootstrap over steps; of the prediction, when it carries one
};

/// Parts of the step time of the critical rank; they sum to the mean counted step time.
struct Breakdown {
    Seconds compute, exposed_communication, wait, bubble, optimizer, launch, input, idle;
    Seconds total() const {
        return compute + exposed_communication + wait + bubble + optimizer + launch + input + idle;
    }
};

inline constexpr Seconds Breakdown::*breakdown_parts[] = {&Breakdown::compute,   &Breakdown::exposed_communication,
                                                          &Breakdown::wait,      &Breakdown::bubble,
                                                          &Breakdown::optimizer, &Breakdown::launch,
                                                          &Breakdown::input,     &Breakdown::idle};

/// One run, measured or predicted.
struct RunFindings {
    std::string experiment, label, model, machine, precision, framework, backend;
    int ranks = 1;
    record::Origin origin = record::Origin::measured;
    record::Status status = record::Status::complete;
    std::string run;  ///< folder or file; "" when not recorded
    std::int64_t counted_steps = 0;
    std::int64_t global_batch = 1;
    StepTime step_time;
    std::vector<Seconds> step_times;  ///< of the counted steps
    int seeds = 1;                    ///< simulations that these are of (pool_seeds)
    double throughput = 0;  ///< samples of the global batch per second, from the median; of a collective, bus GB/s
    std::string throughput_unit;
    std::optional<double> speedup, efficiency;
    std::string passes;  ///< how a step of many passes was told by shorter ones (extrapolate_passes); "": it was not
    std::string spans;   ///< of which steps they were recorded: SpanCoverage::text, and how many the breakdown is of
    Breakdown breakdown;
    Breakdown breakdown_p95;      ///< 95th percentile over steps of each part (does not sum)
    double overlapped_share = 0;  ///< of communication time hidden behind compute
    step::MemoryUse memory;
    Bytes memory_capacity;
    std::optional<double> mfu, hfu;
    std::optional<FlopRate> peak;
    std::string peak_source;
    std::optional<CollectiveFindings> collective;  ///< of a step that is nothing else
    std::optional<Goodput> goodput;                ///< of a prediction whose experiment says how GPUs fail
    std::vector<std::string> warnings;
};

enum class Scaling { single, weak, strong };

struct SeriesFindings {
    std::vector<RunFindings> points;  ///< by rank count
    Scaling scaling = Scaling::single;
    int baseline_ranks = 1;
    std::vector<std::string> warnings;
};

}  // namespace lockstep::analysis
