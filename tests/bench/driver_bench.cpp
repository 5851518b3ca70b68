// What the step driver costs: steps of a CpuExecutor over the same prepared kernels called in a bare loop, in pairs,
// one figure. Must stay at or below 1.02. Both sides run the same kernels (oneDNN's primitives and our own loops), made
// from the same graph on one OpenMP thread each, over their own memory laid out alike. The driven side adds threads,
// dependencies, spans and records.
#include <fmt/format.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "bench/figure.hpp"
#include "cpu/cpu_executor.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernel_table.hpp"
#include "model/builder.hpp"
#include "step/builder.hpp"
#include "world/clock_sync.hpp"
#include "world/world.hpp"

namespace {

using namespace lockstep;

constexpr int pairs = 31, steps_per_measurement = 2;

/// Four residual pairs of 3x3 convolutions with batch norm, as in the middle of a ResNet; about 90 ops a step.
model::Model bench_model() {
    model::ModelBuilder b("driver-bench");
    b.add_input({model::Input::Kind::image, "input", {64, 28, 28}});
    model::Feed x = model::Feed::from_input(0);
    for (int i = 0; i < 8; ++i) {
        const std::string name = fmt::format("layer{}", i);
        const model::LayerId convolution = b.add(name, model::Convolution{64, 64, 3, 1, 1}, {x});
        const model::LayerId norm = b.add(name + ".bn", model::Norm{model::Norm::Kind::batch, 64}, {convolution});
        const model::LayerId sum = i % 2 == 1 ? b.add(name + ".sum", model::Add{}, {norm, convolution}) : norm;
        x = b.add(name + ".relu", model::Activation{model::Activation::Kind::relu}, {sum});
    }
    x = b.add("pool", model::Pool{model::Pool::Kind::average, 0, 0, 0}, {x});
    x = b.add("flatten", model::Flatten{}, {x});
    x = b.add("classifier", model::Linear{64, 10}, {x});
    b.add("loss", model::SoftmaxLoss{10}, {x});
    return b.take();
}

step::StepGraph bench_graph(const model::Model& model) {
    plan::Plan plan;
    plan.micro_batch = 4;
    plan::Framework framework;
    framework.memory_format = plan::MemoryFormat::packed;
    return step::build_step({model, plan, framework, {1, 1}, Precision::fp32, 1, std::nullopt});
}

/// The kernels of the graph on this thread, and a loop that only calls them.
class BareLoop {
public:
    explicit BareLoop(const step::StepGraph& graph)
        : memory_(graph, 0), schedule_(step::make_schedule(graph, graph.rank_class(0).program)) {
        memory_.initialise();
        kernels_ = std::make_unique<cpu::KernelTable>(schedule_, memory_, graph.seed);
    }
    void step(std::int64_t number) const {
        for (std::size_t i = 0; i < schedule_.ops.size(); ++i)
            kernels_->at(static_cast<std::int32_t>(i))->run({number, schedule_.ops[i].instance.micro_batch});
    }

private:
    cpu::TensorMemory memory_;
    step::Schedule schedule_;
    std::unique_ptr<cpu::KernelTable> kernels_;
};

/// Keeps this thread, and those it starts from now on, on the core where it is. On two cores the driver's threads would
/// compute on the one that the bare loop does not use, and two cores of a virtual machine need not be equally fast; on
/// one, whatever any of the driver's threads does costs time.
void stay_on_this_core() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0)
        throw RuntimeError("this process can't be kept on one core (sched_setaffinity refuses); run it without limits");
}

template <class F>
double seconds_of(F&& f) {
    const Nanoseconds begin = world::steady_now();
    f();
    return (world::steady_now() - begin).seconds().value;
}

/// Median over pairs of (driven step / bare step).
bench::Figure measure() {
    stay_on_this_core();
    omp_set_num_threads(1);
    cpu::flush_denormals();
    const model::Model model = bench_model();
    const step::StepGraph graph = bench_graph(model);
    const BareLoop bare(graph);
    const auto world = world::make_self_world();
    cpu::CpuExecutor executor(*world, {1, world::steady_now(), ""});
    executor.prepare(graph);

    std::int64_t bare_step = 0, driven_step = 0;
    const auto run_bare = [&] {
        for (int i = 0; i < steps_per_measurement; ++i) bare.step(bare_step++);
    };
    const auto run_driven = [&] {
        for (int i = 0; i < steps_per_measurement; ++i) executor.enqueue(driven_step++);
        for (int i = 0; i < steps_per_measurement; ++i) executor.collect();
    };
    run_bare();
    run_driven();
    std::vector<double> ratios;
    for (int i = 0; i < pairs; ++i) {
        // Which of the two goes first alternates, so that a drifting machine favours neither.
        double first = 0, second = 0;
        if (i % 2 == 0) {
            first = seconds_of(run_bare);
            second = seconds_of(run_driven);
        } else {
            second = seconds_of(run_driven);
            first = seconds_of(run_bare);
        }
        ratios.push_back(second / first);
    }
    std::nth_element(ratios.begin(), ratios.begin() + pairs / 2, ratios.end());
    return {"ratio", ratios[pairs / 2], 1.02};
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    bench::register_figure("step driver over the same kernels in a bare loop", measure);
    benchmark::RunSpecifiedBenchmarks();
}
