#include "record/sample_run.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "record/live_writer.hpp"

namespace lockstep::record::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep-record-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw RuntimeError("no temporary folder can be made");
    path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

namespace {

using step::Pass;

std::vector<step::OpKind> all_kinds() {
    const auto compute = [](auto kind) { return step::OpKind(step::Compute(kind)); };
    const step::Convolution convolution{2, 3, 8, 9, 16, 3, 2, 1, 4, Pass::backward_weights};
    const step::Message there{{plan::Axis::tp, 1, true}, {1}, 7, -1};
    const step::Message back{{plan::Axis::dp, -1, true}, {2}, 9, -1};
    return {compute(step::Gemm{2, 3, 4, 5, step::Gemm::Transpose::yes, step::Gemm::Transpose::yes}),
            compute(convolution),
            compute(step::Attention{step::Attention::Part::ring, 1, 2, 2, 16, 4, 2, 8, false, 0.1,
                                    0xfedcba9876543210ULL, plan::AttentionAlgorithm::unfused, Pass::backward_data}),
            compute(step::Norm{model::Norm::Kind::rms, 3, 4, 5, 1e-6, Pass::backward_data}),
            compute(step::Elementwise{step::Elementwise::Kind::rotary, 6, 2, 3, 9, 0.3, {4, 2, 8, 5e5}}),
            compute(step::ColumnSum{3, 4}),
            compute(step::PositionSum{3, 4, 5, 6}),
            compute(step::Embedding{5, 6, 7, Pass::backward_weights}),
            compute(step::FirstToken{2, 3, 4, Pass::backward_data}),
            compute(step::SoftmaxLoss{step::SoftmaxLoss::Part::row_sums, 4, 5, 1.0 / 3.0, Pass::backward_data}),
            compute(step::Pool{model::Pool::Kind::average, 1, 2, 6, 7, 3, 4, 1, Pass::backward_data}),
            compute(step::Dropout{12, 0.25, std::numeric_limits<std::uint64_t>::max(), Pass::backward_data}),
            compute(step::OptimizerUpdate{plan::Optimizer::adam, 2, 30, 1e-3, 0.5, true, true}),
            compute(step::Reorder{16, convolution}),
            compute(step::Cast{17}),
            compute(step::Fill{18, -std::numeric_limits<double>::infinity()}),
            compute(step::FoundInf{19}),
            compute(step::BlockTranspose{2, 3, 4}),
            compute(step::Slice{2, 8, 3, 4, Pass::backward_data}),
            compute(step::UpdateLossScale{}),
            compute(step::Route{3, 4, 8, 2, 5, 0.5, true, 0xfedcba9876543211ULL}),
            compute(step::Dispatch{12, 2, 40, 6, 0.25, Pass::backward_data}),
            compute(step::Combine{12, 8, 2, 5, 6, 0.75, Pass::backward_data}),
            step::Collective{step::CollectiveKind::all_to_all, {1}, step::Reduction::max, 20, DType::bf16},
            step::P2PGroup{{1}, {there, back}, {back}},
            step::Copy{step::Copy::Kind::device_to_host, 21, 0.125, 4_us},
            step::HostSync{step::HostSync::Reason::gradient_norm},
            step::StreamWait{}};
}

std::vector<step::Tensor> tensors() {
    step::Tensor full;
    full.name = "weights \"a\\b\"\t\x7f \u00e9\u4e2d\U0001f600";
    full.shape = {4, 6, 1};
    full.shards = {{1, plan::Axis::tp}, {0, plan::Axis::cp, step::Shard::Order::zigzag}};
    full.parameter = {5};
    full.dtype = DType::bf16;
    full.role = step::Role::workspace;
    full.lifetime = step::Lifetime::carried;
    full.layout = step::Layout::opaque;
    full.initial = {step::Initial::Kind::class_labels, 0.02, 1000, 0x8000000000000001ULL};
    full.slots = 3;
    step::Tensor view = full;
    view.name = "";
    view.shape = {2, 3};
    view.shards = {{0, plan::Axis::pp}};
    view.view = step::View{{0}, 5, step::RingPart{plan::Axis::tp, -1}};
    step::Tensor scalar;
    scalar.part_of = {2};
    scalar.name = "loss";
    return {full, view, scalar};
}

}  // namespace

step::StepGraph every_op_kind() {
    step::StepGraph graph;
    graph.name = "every op kind";
    graph.mesh = {.dp = 2};
    graph.placement = {2, 1};
    graph.precision = Precision::fp16_amp;
    graph.micro_batch = 4;
    graph.micro_batches = 2;
    graph.global_batch = 16;
    graph.seed = std::numeric_limits<std::uint64_t>::max() - 1;
    graph.run_ahead = 77;
    graph.is_blocking_launch = true;
    graph.model_flops = Flops{1.0 / 3.0};
    graph.tensors = tensors();
    graph.streams = {{step::Stream::Lane::compute, {}, "compute"}, {step::Stream::Lane::communication, {1}, "dp"}};
    graph.communicators = {{"tp", {plan::Axis::tp}, 1},
                           {"dp", {plan::Axis::dp, plan::Axis::tp}, 2, {}},
                           {"embedding", {plan::Axis::pp}, 1, {0}}};
    graph.blocks = {{"forward", step::Phase::forward, {}, 0}, {"update", step::Phase::optimizer, {}, 0}};
    int number = 0;
    for (const auto& kind : all_kinds()) {
        step::Op op;
        op.name = fmt::format("op {}", number);
        op.phase = static_cast<step::Phase>(number % 5);
        op.kind = kind;
        op.in = {{0}, {1}};
        op.out = {{{2}, step::Access::update}, {{1}, step::Access::accumulate_micro_batches}};
        op.after = {{1}};
        op.stream = {number % 2};
        op.layer = {number};
        op.math = static_cast<MathType>(number % 8);
        op.flops = Flops{0.1 * number};
        op.bytes = Bytes{1e3 * number};
        op.host_time = Seconds{1e-6 / (number + 1)};
        op.is_last_micro_batch_only = number % 2 == 1;
        graph.blocks[number < 11 ? 0 : 1].ops.push_back(op);
        ++number;
    }
    graph.blocks[1].first_op = 11;
    graph.classes = {{"all", {{{{0}, 0, 3}, {{0}, 1, 2}, {{1}, 1, 1}}}, 2, 1}};
    graph.class_of_stage = {{0}};
    graph.loss = {2};
    graph.reduced_gradients = {{0}, {1}};
    return graph;
}

RunDescription full_description(int ranks) {
    RunDescription run;
    run.origin = Origin::measured;
    run.experiment = "tiny, \"quoted\"\nand on two lines";
    run.label = "machine=\u00fcber";
    run.model = "mlp";
    run.machine = "host";
    run.precision = "fp32";
    run.framework = "pytorch-ddp";
    run.backend = "cpu";
    run.intended_machine = "dgx-a100-40gb";
    run.ranks = ranks;
    run.global_batch = std::int64_t{1} << 60U;
    run.is_strong_scaling = true;
    run.throughput_unit = "sequences/s";
    run.tokens_per_sample = 512;
    run.warmup_steps = 2;
    run.planned_steps = 60;
    run.span_cost = Seconds{1e-3 / 3};
    run.seed = 0xffffffffffffffffULL;
    run.epoch_utc = {1'780'000'000'000'000'001};
    run.model_flops = Flops{std::numeric_limits<double>::infinity()};
    run.peak = FlopRate{0.1e12};
    run.peak_source = "probe";
    run.memory = {Bytes{1}, Bytes{2}, Bytes{3}, Bytes{4}, Bytes{5}, Bytes{std::numeric_limits<double>::quiet_NaN()}};
    run.memory_capacity = Bytes{-std::numeric_limits<double>::infinity()};
    run.interval80_low = Seconds{5e-324};  // the smallest double
    run.interval80_high = Seconds{1.7976931348623157e308};
    run.series_text = "{\"model\": \"mlp\"}";
    run.texts = {
        {"experiment.json", "{\"model\": \"mlp\"}"}, {"model.yaml", "name: mlp # \u00e9\n"}, {"empty.yaml", ""}};
    run.provenance = {{"argv", "lockstep run 'a b'"}, {"env.SLURM_JOB_ID", "17"}, {"lockstep", "0.1.0"}, {"none", ""}};
    run.warnings = {"first", "", "null", "3"};
    return run;
}

RankDescription full_rank(int rank) {
    RankDescription description;
    description.rank = rank;
    description.local_rank = rank % 4;
    description.host = fmt::format("node{}", rank);
    description.device = "AMD EPYC, 1 thread";
    description.uuid = "GPU-0123";
    description.cpuset = "0-1";
    description.threads = 1 + rank;
    description.clock_offset = {rank * 1'000'000'007LL};
    description.clock_uncertainty = {rank * 11};
    description.is_sampled = rank != 1;
    description.facts = {{"communicator dp", fmt::format("2 ranks, {} \"the\" first\n", rank)}, {"none", ""}};
    return description;
}

namespace {

/// Of every fourth step none; of the others each one lacks another value.
std::optional<step::DeviceSample> sample_of_step(int rank, std::int64_t number, Nanoseconds time) {
    if (number % 4 == 3) return std::nullopt;
    step::DeviceSample sample{time, Frequency{1.755e9}, Frequency{2.619e9}, Watts{412.5}, Watts{700}, 50 + rank, {}};
    if (number % 5 != 0) sample.throttle = step::ThrottleReasons{0x424};
    if (number % 5 == 1) sample.sm_clock.reset();
    if (number % 5 == 2) sample.memory_clock.reset();
    if (number % 5 == 3) sample.power.reset();
    if (number % 5 == 4) sample.power_limit.reset();
    if (number % 2 == 1) sample.temperature.reset();
    return sample;
}

}  // namespace

step::StepRecord make_step(const step::StepGraph& graph, int rank, std::int64_t number, int events) {
    step::StepRecord record;
    record.step = number;
    record.rank = rank;
    const std::int64_t begin = number * 1'000'000'000 + rank * 1000;
    record.begin = {begin};
    record.loss =
        number % 3 == 2 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(number + rank + 3);
    const std::int32_t ops = graph.op_count();
    for (std::int32_t i = 0; i < events; ++i) {
        const std::int32_t op = i % ops;
        const std::int64_t start = begin + i * 1000 + (number * 31 + rank * 17 + i) % 500;
        record.spans.push_back(
            {op, i / ops % graph.micro_batches, graph.op(op).stream.value, {start - 7}, {start}, {start + 400}});
    }
    record.end = {begin + events * 1000 + 500};
    if (full_rank(rank).is_sampled) record.device = sample_of_step(rank, number, record.end);
    return record;
}

void write_run(const fs::path& folder, const step::StepGraph& graph, const std::vector<int>& steps, Status status,
               int events) {
    make_run_folder(folder);
    const auto run = full_description(static_cast<int>(steps.size()));
    for (int rank = 0; rank < run.ranks; ++rank) {
        LiveWriter writer(rank_file(folder, rank), run, full_rank(rank), graph);
        for (int step = 0; step < steps[static_cast<std::size_t>(rank)]; ++step)
            writer.append(make_step(graph, rank, step, events));
        writer.set_status(status);
        writer.close();
    }
}

bool same(const step::StepRecord& a, const step::StepRecord& b) {
    const bool same_loss = a.loss == b.loss || (std::isnan(a.loss) && std::isnan(b.loss));
    if (a.step != b.step || a.rank != b.rank || a.multiplicity != b.multiplicity || a.begin != b.begin ||
        a.end != b.end || !same_loss || a.device != b.device || a.spans.size() != b.spans.size())
        return false;
    for (std::size_t i = 0; i < a.spans.size(); ++i) {
        const auto& x = a.spans[i];
        const auto& y = b.spans[i];
        if (x.op != y.op || x.micro_batch != y.micro_batch || x.stream != y.stream || x.ready != y.ready ||
            x.start != y.start || x.end != y.end)
            return false;
    }
    return true;
}

std::vector<step::StepRecord> read_all(const RunReader& run) {
    std::vector<step::StepRecord> records;
    run.for_each(0, run.steps(), [&](const step::StepRecord& record) { records.push_back(record); });
    return records;
}

std::vector<char> read_bytes(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}
void write_bytes(const fs::path& file, const std::vector<char>& bytes) {
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace lockstep::record::test
