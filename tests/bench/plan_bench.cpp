// How long it takes to build and check a plan of 64 ranks: median of 15, CPU time of this thread.
#include <algorithm>
#include <ctime>
#include <vector>

#include "bench/figure.hpp"
#include "config/data_path.hpp"
#include "model/model.hpp"
#include "step/builder.hpp"
#include "step/check.hpp"

namespace {

using namespace lockstep;

constexpr double limit_ms = 50;

double cpu_milliseconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

bench::Figure build_and_check(const plan::Mesh& mesh, const plan::Split& split, int passes) {
    config::Diagnostics diagnostics;
    const config::DataPath data(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR});
    const model::Model model =
        model::load_model(data, config::parse_text("{base: gpt3-175b, vocab: 51200}", "bench"), diagnostics);
    diagnostics.throw_if_any();
    plan::Plan plan;
    plan.mesh = mesh;
    plan.split = split;
    plan.accumulation = passes;
    plan.optimizer = plan::Optimizer::adam;
    std::vector<double> times;
    for (int i = 0; i < 15; ++i) {
        const double begin = cpu_milliseconds();
        const step::StepGraph graph = step::build_step({.model = model,
                                                        .plan = plan,
                                                        .framework = {},
                                                        .placement = {mesh.ranks(), 8},
                                                        .precision = Precision::bf16,
                                                        .seed = 1,
                                                        .input = std::nullopt});
        step::check(graph);
        times.push_back(cpu_milliseconds() - begin);
    }
    std::nth_element(times.begin(), times.begin() + 7, times.end());
    return {"median_ms", times[7], limit_ms};
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    bench::register_figure("build and check GPT-3 175B, tp 8 x dp 8",
                           [] { return build_and_check({.tp = 8, .dp = 8}, {.sequence_parallel = true}, 4); });
    bench::register_figure("build and check GPT-3 175B, tp 8 x pp 8, 24 passes",
                           [] { return build_and_check({.tp = 8, .pp = 8}, {.sequence_parallel = true}, 24); });
    bench::register_figure("build and check GPT-3 175B, dp 64, ZeRO 3",
                           [] { return build_and_check({.dp = 64}, {.zero = 3}, 1); });
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
