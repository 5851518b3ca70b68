#include "step/liveness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graphs.hpp"
#include "step/dependencies.hpp"
#include "step/storage.hpp"

namespace lockstep::step::test {
namespace {

/// Memory in cells of 64 bytes (storages begin at multiples of that) that remember which storage was written there
/// last. Runs steps in issue order, but holds what other streams touch until the compute stream waits for them: as
/// late as they may run.
class Cells {
public:
    Cells(const StepGraph& graph, const MemoryPlan& plan)
        : graph_(graph), plan_(plan), tracker_(graph), owner_(static_cast<std::size_t>(plan.arena_bytes / 64), -1) {}

    void visit(const OpInstance& instance, std::int64_t sequence) {
        const bool is_compute = graph_.stream(instance.op->stream).lane == Stream::Lane::compute;
        const auto waits = tracker_.next(instance, sequence);
        if (is_compute)
            for (const std::int64_t earlier : waits)
                if (is_held(earlier)) release(earlier);
        for (const TensorId id : instance.op->in) expect_owned(id, instance);
        for (const Write& write : instance.op->out) {
            if (write.access != Access::overwrite &&
                !(write.access == Access::accumulate_micro_batches && instance.micro_batch == 0))
                expect_owned(write.tensor, instance);
            own(write.tensor, instance);
        }
        if (!is_compute) held_.push_back({sequence, instance});
    }
    void initialise() {
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i)
            if (graph_.tensors[i].initial.kind != Initial::Kind::none && !plan_.offset[i].empty())
                for (std::int32_t slot = 0; slot < graph_.tensors[i].slots; ++slot)
                    own(TensorId{static_cast<std::int32_t>(i)}, after_step(slot));
    }
    void finish() {
        if (!held_.empty()) release(held_.back().first);
        for (const TensorId id : graph_.reduced_gradients) expect_owned(id, after_step(0));
    }
    std::int64_t violations = 0;

private:
    static OpInstance after_step(std::int32_t micro_batch) { return {nullptr, -1, micro_batch, 0}; }
    std::int32_t root(TensorId id) const { return storage_id(graph_, id).value; }
    template <class F>
    void each_cell(TensorId id, const OpInstance& instance, F&& f) {
        const std::int64_t begin = instance.op != nullptr
                                       ? byte_offset(graph_, plan_, 0, instance, id, instance.micro_batch)
                                       : byte_offset(graph_, plan_, 0, id, instance.micro_batch);
        const std::int64_t end = begin + static_cast<std::int64_t>(graph_.tensor(id).bytes().value);
        for (std::int64_t cell = begin / 64; cell < (end + 63) / 64; ++cell)
            f(owner_.at(static_cast<std::size_t>(cell)));
    }
    void own(TensorId id, const OpInstance& instance) {
        each_cell(id, instance, [&](std::int32_t& owner) { owner = root(id); });
    }
    void expect_owned(TensorId id, const OpInstance& instance) {
        each_cell(id, instance, [&](std::int32_t owner) { violations += owner != root(id) ? 1 : 0; });
    }
    bool is_held(std::int64_t sequence) const {
        return std::any_of(held_.begin(), held_.end(), [&](const auto& held) { return held.first == sequence; });
    }
    /// An op of the other stream (there is one) is done, and so are those before it.
    void release(std::int64_t sequence) {
        std::erase_if(held_, [&](const auto& held) {
            if (held.first > sequence) return false;
            for (const TensorId id : held.second.op->in) expect_owned(id, held.second);
            for (const Write& write : held.second.op->out) expect_owned(write.tensor, held.second);
            return true;
        });
    }

    const StepGraph& graph_;
    const MemoryPlan& plan_;
    DependencyTracker tracker_;
    std::vector<std::int32_t> owner_;
    std::vector<std::pair<std::int64_t, OpInstance>> held_;
};

std::int64_t violations(const StepGraph& graph, const MemoryPlan& plan) {
    Cells cells(graph, plan);
    cells.initialise();
    std::int64_t sequence = 0;
    for (int step = 0; step < 2; ++step)
        for (const OpInstance& op : issued(graph)) cells.visit(op, sequence++);
    cells.finish();
    return cells.violations;
}

/// A chain of ops on random earlier tensors, some on a communication stream, some writing into views of a bucket.
StepGraph random_graph(std::mt19937& random) {
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    StepGraph graph;
    graph.micro_batches = 1 + below(5);
    graph.communicators = {{"dp", {plan::Axis::dp}, 1}};
    graph.streams = {{Stream::Lane::compute, {}, "compute"}, {Stream::Lane::communication, CommunicatorId{0}, "dp"}};
    auto add = [&](Tensor tensor) {
        tensor.name = std::to_string(graph.tensors.size());
        graph.tensors.push_back(std::move(tensor));
        return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
    };
    Tensor weight;
    weight.shape = {1 + below(300)};
    weight.lifetime = Lifetime::carried;
    weight.initial.kind = Initial::Kind::one;
    weight.slots = graph.micro_batches;
    std::vector<TensorId> readable{add(weight)};
    Block block;
    const int ops = 5 + below(60);
    for (int i = 0; i < ops; ++i) {
        Tensor out;
        out.shape = {1 + below(500)};
        out.lifetime = below(5) == 0 ? Lifetime::step : Lifetime::micro_batch;
        Op op;
        op.name = "op" + std::to_string(i);
        op.kind = Compute{Fill{}};
        op.stream = StreamId{below(5) == 0 ? 1 : 0};
        for (int k = 0; k < 2; ++k)
            op.in.push_back(readable[static_cast<std::size_t>(below(static_cast<int>(readable.size())))]);
        const TensorId id = add(out);
        op.out = {{id, out.lifetime == Lifetime::step ? Access::accumulate_micro_batches : Access::overwrite}};
        readable.push_back(id);
        if (below(6) == 0 && out.shape[0] > 1) {
            Tensor view = out;
            view.view = View{id, out.shape[0] / 2};
            view.shape = {out.shape[0] - out.shape[0] / 2};
            readable.push_back(add(view));
        }
        block.ops.push_back(std::move(op));
    }
    graph.blocks = {block};
    graph.classes = {{"all", {}, 1, 0}};
    for (int m = 0; m < graph.micro_batches; ++m) graph.classes[0].program.issues.push_back({BlockId{0}, m, 0});
    graph.class_of_stage = {RankClassId{0}};
    return graph;
}

TEST(Liveness, no_value_is_overwritten_while_it_is_needed_in_random_graphs) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
        const StepGraph graph = random_graph(random);
        const MemoryPlan plan = plan_memory(graph, graph.classes[0]);
        ASSERT_EQ(violations(graph, plan), 0) << "seed " << seed << " graph " << i;
        ASSERT_GE(static_cast<double>(plan.arena_bytes), plan.peak.total.value) << "seed " << seed << " graph " << i;
    }
}

TEST(Liveness, a_real_step_keeps_every_value_it_needs) {
    Options options{.micro_batch = 1, .accumulation = 5};
    const StepGraph copied = build("resnet50", options);
    EXPECT_EQ(violations(copied, plan_memory(copied, copied.classes[0])), 0);
    options.framework.bucket_storage = plan::BucketStorage::view;
    options.framework.memory_format = plan::MemoryFormat::packed;
    options.precision = Precision::fp16_amp;
    const StepGraph graph = build("resnet50", options);
    EXPECT_EQ(violations(graph, plan_memory(graph, graph.classes[0])), 0);
}

TEST(Liveness, peak_of_resnet50_holds_weights_momentum_and_buckets_and_grows_with_the_batch) {
    // Carried: 25,557,032 x 4 bytes of parameters, as much momentum, as much in buckets; 53 norms keep statistics of
    // 26,560 features in mean and variance.
    const double carried = 25557032.0 * 4;
    const StepGraph small = build("resnet50", {.micro_batch = 2});
    const MemoryPlan plan = plan_memory(small, small.classes[0]);
    EXPECT_DOUBLE_EQ(plan.peak.parameters.value, carried + 2.0 * 26560 * 4);
    EXPECT_DOUBLE_EQ(plan.peak.optimizer.value, carried);
    EXPECT_GE(plan.peak.gradients.value, carried);
    EXPECT_GE(plan.peak.total.value, 3 * carried);
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.02 * plan.peak.total.value);
    const StepGraph large = build("resnet50", {.micro_batch = 64});
    const MemoryUse use = measure_memory(large, large.classes[0]).peak;
    EXPECT_GT(use.activations.value, 10 * plan.peak.activations.value);
    EXPECT_DOUBLE_EQ(use.total.value, plan_memory(large, large.classes[0]).peak.total.value);
}

TEST(Liveness, accumulation_costs_no_activations_beyond_its_inputs) {
    const StepGraph one = build("resnet50", {.micro_batch = 8});
    const StepGraph many = build("resnet50", {.micro_batch = 8, .accumulation = 16});
    const double inputs = 15.0 * 8 * (3 * 224 * 224 + 1) * 4;
    const double more =
        measure_memory(many, many.classes[0]).peak.total.value - measure_memory(one, one.classes[0]).peak.total.value;
    // Gradients live through all passes: at most as much again.
    EXPECT_LE(more, inputs + 25557032.0 * 4);
    EXPECT_GE(more, inputs);
}

TEST(Dependencies, follow_reads_and_writes_and_nothing_else) {
    const StepGraph graph = build("resnet50", {.accumulation = 2});
    DependencyTracker tracker(graph);
    std::vector<OpInstance> ops = issued(graph);
    std::vector<std::vector<std::int64_t>> found;
    for (std::size_t i = 0; i < ops.size(); ++i) found.push_back(tracker.next(ops[i], static_cast<std::int64_t>(i)));
    auto names = [&](std::size_t i) {
        std::vector<std::string> result;
        for (const std::int64_t earlier : found[i]) result.push_back(ops[static_cast<std::size_t>(earlier)].op->name);
        return result;
    };
    EXPECT_TRUE(found[0].empty());  // conv1 reads inputs and weights of before
    EXPECT_EQ(names(1), std::vector<std::string>{"conv1.forward"});
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].op->name == "bucket0.all_reduce") {
            EXPECT_EQ(names(i), (std::vector<std::string>{"fc.bias.bucket_in", "fc.weight.bucket_in"}));
        }
        // A copy out of a bucket waits for the bucket, and for the copy that read the gradient before.
        if (ops[i].op->name == "fc.bias.bucket_out") {
            const auto waits = names(i);
            EXPECT_NE(std::find(waits.begin(), waits.end(), "bucket0.all_reduce"), waits.end());
            EXPECT_NE(std::find(waits.begin(), waits.end(), "fc.bias.bucket_in"), waits.end());
            EXPECT_EQ(std::find(waits.begin(), waits.end(), "bucket1.all_reduce"), waits.end());
        }
    }
}

TEST(Dependencies, views_conflict_only_where_they_overlap) {
    StepGraph graph;
    graph.streams = {{Stream::Lane::compute, {}, "compute"}};
    Tensor bucket;
    bucket.shape = {10};
    Tensor low = bucket, middle = bucket, high = bucket;
    low.view = View{TensorId{0}, 0}, low.shape = {4};
    middle.view = View{TensorId{0}, 3}, middle.shape = {4};
    high.view = View{TensorId{0}, 6}, high.shape = {4};
    graph.tensors = {bucket, low, middle, high};
    auto write = [](int tensor) {
        Op op;
        op.out = {{TensorId{tensor}, Access::overwrite}};
        op.stream = StreamId{0};
        return op;
    };
    const Op ops[] = {write(1), write(3), write(2), write(0)};
    DependencyTracker tracker(graph);
    using List = std::vector<std::int64_t>;
    EXPECT_EQ(tracker.next({&ops[0], 0, 0, 0}, 10), List{});
    EXPECT_EQ(tracker.next({&ops[1], 1, 0, 0}, 11), List{});          // elements 6 to 9 against 0 to 3
    EXPECT_EQ(tracker.next({&ops[2], 2, 0, 0}, 12), (List{10, 11}));  // 3 to 6 meets both
    EXPECT_EQ(tracker.next({&ops[3], 3, 0, 0}, 13), (List{10, 11, 12}));
}

TEST(Dependencies, copies_of_a_tensor_for_different_micro_batches_are_apart) {
    StepGraph graph;
    graph.streams = {{Stream::Lane::compute, {}, "compute"}};
    Tensor tensor;
    tensor.shape = {4};
    tensor.slots = 2;
    graph.tensors = {tensor};
    Op op;
    op.out = {{TensorId{0}, Access::overwrite}};
    op.stream = StreamId{0};
    DependencyTracker tracker(graph);
    EXPECT_TRUE(tracker.next({&op, 0, 0, 0}, 0).empty());
    EXPECT_TRUE(tracker.next({&op, 0, 1, 0}, 1).empty());
    EXPECT_EQ(tracker.next({&op, 0, 2, 0}, 2), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace lockstep::step::test
