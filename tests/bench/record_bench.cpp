// What recording costs a step: 300 events appended and flushed, as the driver does after each step. The figure is the
// median; what the slowest hundredth of the steps takes is printed beside.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "bench/figure.hpp"
#include "record/live_writer.hpp"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

constexpr int events = 300;
constexpr int steps = 2000;
constexpr double limit_us = 30;

/// 300 ops of one stream, the size of a ResNet-50 step.
step::StepGraph chain() {
    step::StepGraph graph;
    graph.name = "chain";
    step::Tensor tensor;
    tensor.name = "x";
    tensor.shape = {1};
    graph.tensors = {tensor};
    graph.streams = {{step::Stream::Lane::compute, {}, "compute"}};
    graph.blocks = {{"forward", step::Phase::forward, {}, 0}};
    for (int i = 0; i < events; ++i) {
        step::Op op;
        op.name = fmt::format("op {}", i);
        op.kind = step::Compute(step::Cast{1});
        op.stream = {0};
        op.bytes = Bytes{1e6 + i};
        graph.blocks[0].ops.push_back(op);
    }
    graph.classes = {{"all", {{{{0}, 0, 0}}}, 1, 0}};
    graph.class_of_stage = {{0}};
    return graph;
}

step::StepRecord make_step(std::int64_t number) {
    step::StepRecord record;
    record.step = number;
    record.begin = {number * 100'000'000};
    for (int i = 0; i < events; ++i) {
        const Nanoseconds start{record.begin.count + i * 300'000};
        record.spans.push_back({i, 0, 0, start, start, {start.count + 250'000 + i}});
    }
    record.end = {record.begin.count + events * 300'000};
    return record;
}

double median_append_us(record::LiveWriter& writer) {
    std::vector<double> times;
    for (int i = 0; i < steps; ++i) {
        const auto record = make_step(i);
        const auto begin = std::chrono::steady_clock::now();
        writer.append(record);
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(times.begin(), times.end());
    fmt::print(stderr, "append: median {:.1f} us, 90 % within {:.1f} us, 99 % within {:.1f} us, longest {:.0f} us\n",
               times[steps / 2], times[steps * 9 / 10], times[steps * 99 / 100], times.back());
    return times[steps / 2];
}

bench::Figure measure() {
    std::string folder = (fs::temp_directory_path() / "record-bench-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr)
        throw RuntimeError(folder + ": can't be made; set TMPDIR to a folder that can be written");
    record::LiveWriter writer(record::rank_file(folder, 0), {}, {}, chain());
    const double median = median_append_us(writer);
    writer.close();
    fs::remove_all(folder);
    return {"median_us", median, limit_us};
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    bench::register_figure("recording 300 events a step", measure);
    benchmark::RunSpecifiedBenchmarks();
}
