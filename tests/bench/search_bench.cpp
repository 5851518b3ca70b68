// How fast and how well the plan search evaluates plans of GPT-3 175B on 64 A100: CPU time of this thread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <random>
#include <vector>

#include "bench/figure.hpp"
#include "machine/catalog.hpp"
#include "search/estimate.hpp"
#include "search/simulate_plan.hpp"

namespace {

using namespace lockstep;

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The shipped experiment with a random sample of its space.
struct Case {
    config::DataPath data{std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}};
    experiment::Experiment experiment =
        experiment::load_experiment(LOCKSTEP_SOURCE_DIR "/experiments/search-gpt3-64.yaml", {}, data).points.at(0);
    machine::Machine machine = load();
    machine::Placement placement = machine.place(experiment.ranks.back());
    cost::CostModel costs{machine, placement};
    search::Subject subject{experiment, machine, placement, costs};
    std::vector<plan::Plan> plans;

    explicit Case(std::size_t count) {
        auto space =
            plan::make_space(plan::with_defaults(experiment.search, experiment.model, placement.ranks), experiment.plan,
                             experiment.batch, experiment.optimizer, experiment.model, placement);
        std::mt19937 random(7);
        std::shuffle(space.candidates.begin(), space.candidates.end(), random);
        for (std::size_t i = 0; i < std::min(count, space.candidates.size()); ++i)
            plans.push_back(space.candidates[i].plan);
    }
    machine::Machine load() {
        config::Diagnostics diagnostics;
        auto loaded = machine::load_machine(data, experiment.machine, diagnostics);
        diagnostics.throw_if_any();
        return loaded;
    }
};

/// Plans a second and core, the small graphs that they are estimated from included: of the whole space (15,552 plans),
/// without what the memory limit discards before.
bench::Figure estimates() {
    Case c(std::numeric_limits<std::size_t>::max());
    search::Pieces pieces(c.subject);
    search::Estimator estimator(c.subject, pieces);
    const double begin = cpu_seconds();
    for (const plan::Plan& plan : c.plans) estimator.estimate(plan);
    return {"plans_per_second", static_cast<double>(c.plans.size()) / (cpu_seconds() - begin), 1000};
}

/// Plans a second and core when the small graphs are there: the pipeline recurrence alone.
bench::Figure recurrence() {
    Case c(1000);
    search::Pieces pieces(c.subject);
    search::Estimator estimator(c.subject, pieces);
    for (const plan::Plan& plan : c.plans) estimator.estimate(plan);
    const double begin = cpu_seconds();
    for (const plan::Plan& plan : c.plans) estimator.estimate(plan);
    return {"plans_per_second", static_cast<double>(c.plans.size()) / (cpu_seconds() - begin), 1000};
}

/// Percent by which estimates are off the simulator's step time.
bench::Figure error(double quantile, double limit) {
    Case c(60);
    search::Pieces pieces(c.subject);
    search::Estimator estimator(c.subject, pieces);
    std::vector<double> errors;
    for (const plan::Plan& plan : c.plans) {
        const Seconds simulated = search::simulate_plan(c.subject, plan).step_time.median;
        errors.push_back(100 * std::abs(estimator.estimate(plan).time() / simulated - 1));
    }
    std::sort(errors.begin(), errors.end());
    return {"percent", errors[static_cast<std::size_t>(quantile * static_cast<double>(errors.size() - 1))], limit};
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    bench::register_figure("plan search: an estimate, its small graphs included", estimates);
    bench::register_figure("plan search: an estimate, the pieces known", recurrence);
    bench::register_figure("plan search: error of estimates, median of 60 plans", [] { return error(0.5, 2); });
    bench::register_figure("plan search: error of estimates, 95th percentile", [] { return error(0.95, 10); });
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
