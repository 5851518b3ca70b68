#include "step/builder.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "graphs.hpp"
#include "step/check.hpp"
#include "step/gradient_groups.hpp"

namespace lockstep::step::test {
namespace {

std::int64_t tensors_of(const StepGraph& graph, Role role) {
    std::int64_t n = 0;
    for (const Tensor& tensor : graph.tensors) n += tensor.role == role ? 1 : 0;
    return n;
}

double flops(const StepGraph& graph, Phase phase) {
    double sum = 0;
    for (const OpInstance& op : issued(graph)) sum += op.op->phase == phase ? op.op->flops.value : 0;
    return sum;
}

double products(const StepGraph& graph, Phase phase) {
    double sum = 0;
    for (const OpInstance& op : issued(graph))
        if (op.op->phase == phase && (kind_name(*op.op) == "convolution" || kind_name(*op.op) == "gemm"))
            sum += op.op->flops.value;
    return sum;
}

double reduced_bytes(const StepGraph& graph) {
    double sum = 0;
    for (const OpInstance& op : issued(graph)) sum += is_communication(*op.op) ? op.op->bytes.value : 0;
    return sum;
}

const Op* find(const StepGraph& graph, const std::string& name) {
    for (const OpInstance& op : issued(graph))
        if (op.op->name == name) return op.op;
    return nullptr;
}

std::int64_t place(const StepGraph& graph, const std::string& name) {
    const auto ops = issued(graph);
    for (std::size_t i = 0; i < ops.size(); ++i)
        if (ops[i].op->name == name) return static_cast<std::int64_t>(i);
    return -1;
}

TEST(Builder, resnet50_has_161_parameter_tensors_and_all_reduces_each_of_its_25557032_gradients_once) {
    // 53 convolutions, 53 batch norms of scale and shift, weight and bias of the last layer: 53 + 106 + 2.
    const StepGraph graph = build("resnet50");
    EXPECT_EQ(tensors_of(graph, Role::parameter), 161);
    EXPECT_EQ(graph.reduced_gradients.size(), 161U);
    EXPECT_DOUBLE_EQ(reduced_bytes(graph), 4.0 * 25557032);
    check(graph);
}

TEST(Builder, resnet50_forward_products_are_2_x_4_089_G_per_image) {
    // Torchvision publishes 4.09 G multiply-adds; backward needs twice the products, without the input's gradient:
    // conv1 has 112^2 64 x 3 x 7^2 = 118,013,952 multiply-adds.
    const StepGraph graph = build("resnet50", {.micro_batch = 2});
    const double forward = products(graph, Phase::forward);
    EXPECT_NEAR(forward / (2 * 2 * 4.089e9), 1, 0.001);
    EXPECT_NEAR((2 * forward - products(graph, Phase::backward)) / (2.0 * 2 * 118013952), 1, 1e-4);
    EXPECT_NEAR(graph.model_flops.value / (3 * forward), 1, 1e-4);  // the bias of the last layer apart
}

TEST(Builder, work_does_not_depend_on_how_a_batch_is_accumulated) {
    const StepGraph whole = build("resnet50", {.micro_batch = 8});
    const StepGraph split = build("resnet50", {.micro_batch = 2, .accumulation = 4});
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
        EXPECT_NEAR(flops(split, phase) / flops(whole, phase), 1, 1e-12) << to_string(phase);
    EXPECT_DOUBLE_EQ(reduced_bytes(split), reduced_bytes(whole));
    EXPECT_EQ(split.global_batch, whole.global_batch);
    check(split);
}

TEST(Builder, one_rank_communicates_nothing_and_has_no_buckets) {
    const StepGraph graph = build("resnet50", {.dp = 1});
    EXPECT_EQ(count_if(graph, is_communication), 0);
    EXPECT_TRUE(graph.communicators.empty());
    EXPECT_EQ(tensors_of(graph, Role::communication), 0);
    check(graph);
}

TEST(Builder, a_tied_weight_gets_both_contributions_in_one_gradient) {
    const StepGraph graph =
        build("gpt-small", {.micro_batch = 1, .accumulation = 2, .optimizer = plan::Optimizer::adam});
    const Op* output = find(graph, "output.backward_weights");
    const Op* embedding = find(graph, "embedding.backward_weights");
    ASSERT_TRUE(output && embedding);
    EXPECT_EQ(output->out[0].tensor, embedding->out[0].tensor);
    EXPECT_EQ(output->out[0].access, Access::accumulate_micro_batches);
    EXPECT_EQ(embedding->out[0].access, Access::accumulate);
    const auto& update = std::get<OptimizerUpdate>(std::get<Compute>(find(graph, "optimizer")->kind));
    EXPECT_EQ(update.count, 124439808);  // published size of GPT-2 small
    EXPECT_EQ(find(graph, "optimizer")->out.size(), 3U * static_cast<std::size_t>(update.parameters));
    check(graph);
}

TEST(Builder, a_residual_sum_hands_one_gradient_to_both_sides_and_meets_another_in_an_add) {
    // 16 residual blocks: where a block begins, the gradients of its branch and of the shortcut are added.
    const StepGraph graph = build("resnet50");
    EXPECT_EQ(count_if(graph, [](const Op& op) { return op.name.ends_with("add_gradient"); }), 16);
    EXPECT_EQ(find(graph, "conv1.backward_data"), nullptr);
}

TEST(Builder, gradients_travel_in_the_last_micro_step_only) {
    const StepGraph graph = build("resnet50", {.accumulation = 3});
    for (const OpInstance& op : issued(graph))
        EXPECT_TRUE(!is_communication(*op.op) || op.micro_batch == 2) << op.op->name;
    EXPECT_EQ(count_kind(graph, "all_reduce"), count_kind(build("resnet50"), "all_reduce"));
    EXPECT_EQ(count_kind(graph, "bucket_in"), 161);
    EXPECT_EQ(count_kind(graph, "bucket_out"), 161);
}

TEST(Builder, without_overlap_everything_travels_after_the_backward_pass) {
    const StepGraph beside = build("resnet50");
    const StepGraph after = build("resnet50", {.overlap = false});
    EXPECT_LT(place(beside, "bucket0.all_reduce"), place(beside, "conv1.backward_weights"));
    EXPECT_GT(place(after, "bucket0.all_reduce"), place(after, "conv1.backward_weights"));
    EXPECT_EQ(count_kind(after, "all_reduce"), count_kind(beside, "all_reduce"));
    check(after);
}

TEST(Builder, gradients_that_live_in_buckets_are_averaged_in_place) {
    Options options;
    options.framework.bucket_storage = plan::BucketStorage::view;
    const StepGraph graph = build("resnet50", options);
    EXPECT_EQ(count_kind(graph, "bucket_in") + count_kind(graph, "bucket_out"), 0);
    EXPECT_EQ(std::get<Collective>(find(graph, "bucket0.all_reduce")->kind).reduction, Reduction::average);
    for (const TensorId id : graph.reduced_gradients) EXPECT_TRUE(graph.tensor(id).view.has_value());
    check(graph);
}

TEST(Builder, a_wire_dtype_halves_what_travels) {
    Options options;
    options.framework.wire_dtype = DType::fp16;
    for (const auto storage : {plan::BucketStorage::copied, plan::BucketStorage::view}) {
        options.framework.bucket_storage = storage;
        const StepGraph graph = build("resnet50", options);
        EXPECT_DOUBLE_EQ(reduced_bytes(graph), 2.0 * 25557032);
        check(graph);
    }
}

TEST(Builder, bf16_keeps_a_master_weight_for_each_parameter_and_sends_bf16) {
    const StepGraph graph = build("resnet50", {.precision = Precision::bf16});
    EXPECT_DOUBLE_EQ(reduced_bytes(graph), 2.0 * 25557032);
    EXPECT_EQ(tensors_of(graph, Role::master_weight), 161);
    EXPECT_EQ(find(graph, "optimizer")->out.size(), 3U * 161);  // parameter, momentum, master
    check(graph);
}

TEST(Builder, fp16_amp_scales_the_loss_and_asks_before_it_updates) {
    // Cast once a step: 53 convolutions, weight and bias of the last layer; norms stay fp32.
    const StepGraph graph = build("resnet50", {.accumulation = 2, .precision = Precision::fp16_amp});
    EXPECT_EQ(count_kind(graph, "cast"), 55 + 2 * 55);
    EXPECT_LT(place(graph, "found_inf"), place(graph, "found_inf.sync"));
    EXPECT_LT(place(graph, "found_inf.sync"), place(graph, "optimizer"));
    EXPECT_LT(place(graph, "optimizer"), place(graph, "update_loss_scale"));
    EXPECT_DOUBLE_EQ(reduced_bytes(graph), 4.0 * 25557032);
    EXPECT_EQ(tensors_of(graph, Role::main_gradient), 55);
    check(graph);
}

TEST(Builder, packed_convolutions_reorder_weights_once_and_gradients_each_pass) {
    // 53 forward, 52 backward (the first convolution gives no input gradient), 53 gradients in each of 2 passes.
    Options options{.accumulation = 2};
    options.framework.memory_format = plan::MemoryFormat::packed;
    const StepGraph graph = build("resnet50", options);
    EXPECT_EQ(count_kind(graph, "reorder"), 53 + 52 + 2 * 53);
    EXPECT_EQ(find(graph, "conv1.reorder_gradient")->out[0].access, Access::accumulate_micro_batches);
    EXPECT_EQ(count_kind(build("resnet50"), "reorder"), 0);
    check(graph);
}

TEST(Builder, a_data_pipeline_brings_each_micro_batch_on_its_own_stream) {
    Copy copy;
    copy.least_time = Seconds{0.01};
    const StepGraph graph = build("resnet50", {.accumulation = 2, .input = copy});
    EXPECT_EQ(count_kind(graph, "input"), 2);
    const Op* load = find(graph, "input.load");
    EXPECT_EQ(graph.stream(load->stream).lane, Stream::Lane::input);
    EXPECT_DOUBLE_EQ(std::get<Copy>(load->kind).least_time.value, 0.01);
    check(graph);
}

TEST(Builder, inputs_hold_every_micro_batch_of_the_global_batch_once) {
    const StepGraph graph = build("resnet50", {.dp = 4, .micro_batch = 2, .accumulation = 3});
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.role != Role::input) continue;
        EXPECT_EQ(tensor.slots, 3);
        EXPECT_EQ(global_shape(tensor, graph.mesh)[0] * tensor.slots, graph.global_batch);
        EXPECT_EQ(shard_runs(tensor, graph.mesh, 3)[0].front().global, 6);
    }
}

TEST(Builder, every_precision_framework_and_optimizer_gives_a_sound_graph) {
    for (const char* name : {"resnet50", "gpt-small"}) {
        const model::Model model = load(name);
        for (const auto precision : {Precision::fp32, Precision::tf32, Precision::fp16_amp, Precision::bf16})
            for (const auto attention : {plan::AttentionAlgorithm::flash, plan::AttentionAlgorithm::unfused})
                for (const auto fusion : {plan::OptimizerFusion::fused, plan::OptimizerFusion::per_parameter}) {
                    Options options{.accumulation = 2, .precision = precision, .optimizer = plan::Optimizer::adam};
                    options.framework.attention = attention;
                    options.framework.optimizer_fusion = fusion;
                    EXPECT_NO_THROW(check(build(model, options))) << name << " " << to_string(precision);
                }
    }
}

TEST(Builder, refuses_what_it_cannot_build_and_says_what_it_can) {
    const model::Model model = load("resnet50");
    try {
        build(model, {.precision = Precision::fp8});
        FAIL();
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("use fp32, tf32, fp16-amp or bf16"), std::string::npos);
    }
    EXPECT_THROW(build(model, {.micro_batch = 0}), InputError);
    plan::Plan plan;
    plan.mesh.tp = 2;
    EXPECT_THROW(build_step({.model = model, .plan = plan, .framework = {}, .placement = {2, 2}, .input = {}}),
                 InputError);
}

TEST(Buckets, close_when_they_hold_their_limit_as_pytorch_does) {
    // compute_bucket_assignment_by_size: the tensor that reaches the limit still belongs to the bucket.
    const std::vector<Bytes> sizes{Bytes{1}, Bytes{2}, Bytes{3}, Bytes{10}, Bytes{1}, Bytes{4}, Bytes{1}};
    const std::vector<std::vector<std::size_t>> expected{{0, 1}, {2, 3}, {4, 5}, {6}};
    EXPECT_EQ(assign_buckets(sizes, Bytes{3}, Bytes{5}), expected);
}

TEST(Buckets, the_first_of_resnet50_is_its_last_layer) {
    // Reverse order: bias (1,000) is below 1 MiB, the weight (2,048,000) goes beyond it; the others close at 25 MiB.
    const StepGraph graph = build("resnet50");
    std::vector<std::int64_t> counts;
    for (const OpInstance& op : issued(graph))
        if (const auto* collective = std::get_if<Collective>(&op.op->kind)) counts.push_back(collective->count);
    ASSERT_GE(counts.size(), 2U);
    EXPECT_EQ(counts[0], 2049000);
    for (std::size_t i = 1; i + 1 < counts.size(); ++i) EXPECT_GE(counts[i] * 4, 25 * 1048576) << i;
}

}  // namespace
}  // namespace lockstep::step::test
