// Small models trained for a few steps by 1 and 2 ranks, as threads of the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>

#include "base/error.hpp"
#include "cpu/cpu_executor.hpp"
#include "cpu/isa.hpp"
#include "cpu/small_models.hpp"
#include "world/clock_sync.hpp"
#include "world/world.hpp"

namespace lockstep::cpu::testing {
namespace {

using Record = step::StepRecord;

/// What one rank brings home.
struct Trained {
    std::vector<Record> records;
    std::vector<std::vector<float>> gradients;  // reduced, of the last step
    std::vector<float> first_parameter;
};

Trained train(const step::StepGraph& graph, world::World& world, int steps) {
    CpuExecutor executor(world, {1, world::steady_now(), "test"});
    executor.prepare(graph);
    executor.check_wire();
    Trained trained;
    const auto collect = [&] { trained.records.push_back(executor.collect().front()); };
    for (int step = 0; step < steps; ++step) {
        executor.enqueue(step);
        if (step > 0) collect();
    }
    collect();
    for (const step::TensorId id : graph.reduced_gradients) trained.gradients.push_back(executor.read(id));
    for (std::size_t i = 0; i < graph.tensors.size() && trained.first_parameter.empty(); ++i)
        if (graph.tensors[i].role == step::Role::parameter)
            trained.first_parameter = executor.read(step::TensorId{static_cast<std::int32_t>(i)});
    return trained;
}

std::vector<Trained> train_ranks(const step::StepGraph& graph, int ranks, int steps) {
    std::vector<Trained> all(static_cast<std::size_t>(ranks));
    world::run_thread_world(ranks, [&](world::World& world) { all[world.rank()] = train(graph, world, steps); });
    return all;
}

double relative_l2(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < a[i].size(); ++j) {
            const double d = static_cast<double>(a[i][j]) - b[i][j];
            difference += d * d;
            norm += static_cast<double>(b[i][j]) * b[i][j];
        }
    return norm > 0 ? std::sqrt(difference / norm) : INFINITY;
}

/// Two micro-batches of four samples, or of two on each of two ranks.
void expect_two_ranks_equal_the_whole(const model::Model& model, SmallPlan plan) {
    plan.accumulation = 2;
    plan.micro_batch = 4;
    const Trained whole = train_ranks(small_graph(model, plan), 1, 3)[0];
    plan.micro_batch = 2;
    plan.ranks = 2;
    const std::vector<Trained> split = train_ranks(small_graph(model, plan), 2, 3);
    for (const Trained& rank : split) EXPECT_LE(relative_l2(rank.gradients, whole.gradients), 1e-4);
    for (int step = 0; step < 3; ++step) {
        const double mean = (split[0].records[step].loss + split[1].records[step].loss) / 2;
        EXPECT_NEAR(mean, whole.records[step].loss, 1e-4 * whole.records[step].loss);
    }
    EXPECT_EQ(split[0].first_parameter, split[1].first_parameter) << "replicas must stay equal";
}

TEST(CpuExecutor, two_ranks_reduce_to_the_gradients_of_the_unsplit_cnn) {
    for (const auto format : {plan::MemoryFormat::packed, plan::MemoryFormat::channels_last})
        for (const auto storage : {plan::BucketStorage::copied, plan::BucketStorage::view}) {
            SmallPlan plan;
            plan.memory_format = format;
            plan.bucket_storage = storage;
            expect_two_ranks_equal_the_whole(small_cnn(Normalised::no), plan);
        }
}

TEST(CpuExecutor, two_ranks_reduce_to_the_gradients_of_the_unsplit_transformer) {
    for (const auto attention : {plan::AttentionAlgorithm::flash, plan::AttentionAlgorithm::unfused})
        for (const auto optimizer : {plan::Optimizer::sgd_momentum, plan::Optimizer::adam}) {
            SmallPlan plan;
            plan.attention = attention;
            plan.optimizer = optimizer;
            expect_two_ranks_equal_the_whole(small_gpt(), plan);
        }
}

TEST(CpuExecutor, the_loss_starts_near_that_of_guessing) {
    // A model that knows nothing gives every class the same probability: log(classes).
    const Trained gpt = train_ranks(small_graph(small_gpt(), {}), 1, 1)[0];
    EXPECT_NEAR(gpt.records[0].loss, std::log(50.0), 0.3);
    const Trained cnn = train_ranks(small_graph(small_cnn(Normalised::yes), {}), 1, 1)[0];
    EXPECT_NEAR(cnn.records[0].loss, std::log(10.0), 2.0);
}

TEST(CpuExecutor, packed_and_plain_weights_train_alike_with_batch_norm) {
    SmallPlan plan;
    const Trained packed = train_ranks(small_graph(small_cnn(Normalised::yes), plan), 1, 3)[0];
    plan.memory_format = plan::MemoryFormat::channels_last;
    const Trained plain = train_ranks(small_graph(small_cnn(Normalised::yes), plan), 1, 3)[0];
    EXPECT_LE(relative_l2(packed.gradients, plain.gradients), 1e-4);
}

TEST(CpuExecutor, spans_are_ordered_and_follow_their_dependencies) {
    SmallPlan plan;
    plan.ranks = 2;
    const step::StepGraph graph = small_graph(small_cnn(Normalised::yes), plan);
    for (const Trained& rank : train_ranks(graph, 2, 4)) {
        Nanoseconds last_end{};
        for (const Record& record : rank.records) {
            std::vector<Nanoseconds> stream_end(graph.streams.size());
            EXPECT_EQ(record.spans.size(), static_cast<std::size_t>(graph.op_count()));
            for (const step::Span& span : record.spans) {
                EXPECT_GE(span.ready.count, 0);
                EXPECT_LE(span.ready, span.start);
                EXPECT_LE(span.start, span.end);
                EXPECT_GE(span.start, stream_end[span.stream]) << graph.op(span.op).name << " overtakes its stream";
                stream_end[span.stream] = span.end;
                EXPECT_GE(span.start, record.begin);
                EXPECT_LE(span.end, record.end);
            }
            EXPECT_GT(record.end, last_end);
            last_end = record.end;
        }
    }
}

TEST(CpuExecutor, gradients_are_ready_to_be_sent_before_the_backward_pass_ends) {
    SmallPlan plan;
    plan.ranks = 2;
    const step::StepGraph graph = small_graph(small_cnn(Normalised::no), plan);
    const Trained rank = train_ranks(graph, 2, 2)[0];
    int collectives = 0;
    Nanoseconds first_collective{INT64_MAX}, last_backward{};
    for (const step::Span& span : rank.records[1].spans) {
        const step::Op& op = graph.op(span.op);
        collectives += step::is_communication(op) ? 1 : 0;
        if (step::is_communication(op)) first_collective = std::min(first_collective, span.ready);
        if (op.phase == step::Phase::backward) last_backward = std::max(last_backward, span.end);
    }
    EXPECT_GT(collectives, 1);
    EXPECT_LT(first_collective, last_backward);
}

TEST(CpuExecutor, steady_steps_touch_no_fresh_memory) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer's own bookkeeping touches fresh memory";
#endif
    const step::StepGraph graph = small_graph(small_cnn(Normalised::yes), {});
    const auto world = world::make_self_world();
    CpuExecutor executor(*world, {1, world::steady_now(), "test"});
    executor.prepare(graph);
    const auto run = [&](int from, int to) {
        for (int step = from; step < to; ++step) {
            executor.enqueue(step);
            executor.collect();
        }
    };
    const auto faults = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_minflt;
    };
    run(0, 10);
    const long before = faults();
    run(10, 60);
    EXPECT_LT(faults() - before, 50) << "less than one page fault a step, records included";
}

TEST(CpuExecutor, says_what_it_runs_on_what_it_needs_and_where_it_is) {
    const step::StepGraph graph = small_graph(small_gpt(), {});
    const auto world = world::make_self_world();
    CpuExecutor executor(*world, {1, world::steady_now(), "test CPU"});
    EXPECT_EQ(executor.where(), "preparing");
    executor.prepare(graph);
    EXPECT_EQ(executor.info().backend, "cpu");
    EXPECT_EQ(executor.info().device, "test CPU, 1 thread");
    EXPECT_GT(executor.memory().total, executor.memory().workspace);
    executor.enqueue(0);
    executor.enqueue(1);
    EXPECT_THROW(executor.enqueue(2), LogicError);
    executor.collect();
    executor.collect();
    EXPECT_THROW(executor.collect(), LogicError);
    EXPECT_EQ(executor.where(), "idle after step 1");
}

TEST(CpuExecutor, refuses_precisions_the_processor_lacks_and_names_the_way_out) {
    SmallPlan plan;
    for (const Precision precision : {Precision::tf32, Precision::fp16_amp, Precision::bf16}) {
        if (precision == Precision::bf16 && has_native_bf16()) continue;
        plan.precision = precision;
        const step::StepGraph graph = small_graph(small_gpt(), plan);
        const auto world = world::make_self_world();
        CpuExecutor executor(*world, {});
        try {
            executor.prepare(graph);
            ADD_FAILURE() << "ran " << to_string(precision);
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), ::testing::HasSubstr("--set precision=fp32"));
            EXPECT_THAT(error.what(), ::testing::HasSubstr(std::string(to_string(precision))));
        }
    }
}

TEST(CpuExecutor, trains_in_bf16_where_the_processor_can) {
    if (!has_native_bf16()) GTEST_SKIP() << "this CPU (" << isa_name() << ") has no bf16 products";
    SmallPlan plan;
    const Trained exact = train_ranks(small_graph(small_gpt(), plan), 1, 2)[0];
    plan.precision = Precision::bf16;
    const Trained rounded = train_ranks(small_graph(small_gpt(), plan), 1, 2)[0];
    EXPECT_NEAR(rounded.records[1].loss, exact.records[1].loss, 0.02 * exact.records[1].loss);
    EXPECT_LE(relative_l2(rounded.gradients, exact.gradients), 0.1);
}

TEST(CpuExecutor, a_rank_that_computes_no_loss_reports_none) {
    step::StepGraph graph;
    step::Tensor loss;
    loss.name = "loss of another stage";
    loss.shape = {1};
    step::Tensor mine = loss;
    mine.name = "mine";
    mine.lifetime = step::Lifetime::carried;
    graph.tensors = {loss, mine};
    graph.loss = step::TensorId{0};
    graph.streams = {{step::Stream::Lane::compute, {}, "compute"}};
    step::Op fill;
    fill.name = "fill";
    fill.kind = step::Compute{step::Fill{1, 3}};
    fill.stream = step::StreamId{0};
    fill.out = {{step::TensorId{1}, step::Access::overwrite}};
    graph.blocks = {{"block", step::Phase::forward, {fill}, 0}};
    graph.classes = {{"all", {{{step::BlockId{0}, 0, 0}}}, 1, 0}};
    graph.class_of_stage = {step::RankClassId{0}};
    const auto world = world::make_self_world();
    CpuExecutor executor(*world, {1, world::steady_now(), "test"});
    executor.prepare(graph);
    executor.enqueue(0);
    EXPECT_TRUE(std::isnan(executor.collect().front().loss));
    EXPECT_EQ(executor.read(step::TensorId{1}), std::vector<float>{3});
    EXPECT_THROW(executor.read(step::TensorId{0}), RuntimeError);
}

TEST(CpuExecutor, refuses_a_graph_of_another_size) {
    SmallPlan plan;
    plan.ranks = 2;
    const step::StepGraph graph = small_graph(small_gpt(), plan);
    const auto world = world::make_self_world();
    CpuExecutor executor(*world, {});
    EXPECT_THROW(executor.prepare(graph), InputError);
}

}  // namespace
}  // namespace lockstep::cpu::testing
