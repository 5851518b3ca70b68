#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.hpp"

namespace lockstep::experiment {
namespace {

using testing::ElementsAre;

using LoadExperiment = ExperimentFile;

TEST_F(LoadExperiment, a_model_and_a_batch_are_enough) {
    const LoadedExperiments loaded = load(smallest);
    ASSERT_EQ(loaded.points.size(), 1U);
    const Experiment& point = loaded.points[0];
    EXPECT_EQ(point.name, "mine");
    EXPECT_EQ(point.label, "");
    EXPECT_EQ(point.model.name, "resnet50");
    EXPECT_EQ(point.machine.text(), "host");
    EXPECT_THAT(point.ranks, ElementsAre(1));
    EXPECT_EQ(point.precision, Precision::fp32);
    EXPECT_EQ(point.framework.name, "pytorch-ddp");
    EXPECT_EQ(point.batch.per_rank, 8);
    EXPECT_EQ(point.batch.accumulation, 1);
    EXPECT_EQ(point.plan.bucket, 25_MiB);
    EXPECT_EQ(point.plan.first_bucket, 1_MiB);
    EXPECT_EQ(point.optimizer, plan::Optimizer::sgd_momentum);
    EXPECT_FALSE(point.input.has_value());
    EXPECT_EQ(point.steps, 50);
    EXPECT_EQ(point.warmup, 10);
    EXPECT_EQ(point.seed, 1U);
    EXPECT_EQ(point.threads_per_rank, 0);
    EXPECT_FALSE(point.is_strong_scaling());
}

TEST_F(LoadExperiment, everything_that_is_written_is_read) {
    const Experiment point = load(R"(
model: {base: gpt-small, seq_len: 64, layers: 2}
machine: {node: dgx-a100-80gb, count: 4, network: ib-hdr-8}
ranks: [1, 2]
precision: bf16
framework: pytorch-ddp-bucket-view
global_batch: 64
accumulation: 4
plan: {bucket: 10 MiB, first_bucket: 2 MiB, overlap: false, microbatch: 8}
input: {bytes_per_sample: 150 kB, rate: 20 GB/s}
steps: 7
warmup: 0
seed: 42
optimizer: sgd-momentum
threads_per_rank: 3
)",
                                  {"ranks=2"})
                                 .points.at(0);
    EXPECT_EQ(point.model.tokens_per_sample(), 64);
    EXPECT_EQ(point.machine.find("count")->text(), "4");
    EXPECT_EQ(point.precision, Precision::bf16);
    EXPECT_EQ(point.framework.bucket_storage, plan::BucketStorage::view);
    EXPECT_TRUE(point.is_strong_scaling());
    EXPECT_EQ(point.plan.bucket, 10_MiB);
    EXPECT_FALSE(point.plan.overlap);
    EXPECT_EQ(point.input->bytes_per_sample, Bytes{150e3});
    EXPECT_EQ(point.input->rate, 20_GBps);
    EXPECT_EQ(point.steps, 7);
    EXPECT_EQ(point.warmup, 0);
    EXPECT_EQ(point.seed, 42U);
    EXPECT_EQ(point.optimizer, plan::Optimizer::sgd_momentum);
    EXPECT_EQ(point.threads_per_rank, 3);
    const plan::Plan plan = point.plan_for({2, 2});
    EXPECT_EQ(plan.micro_batch, 8);  // 64 / (2 replicas x 4 passes)
    EXPECT_EQ(plan.global_batch(), 64);
}

TEST_F(LoadExperiment, sequences_are_trained_with_adam_unless_told_otherwise) {
    EXPECT_EQ(load("{model: bert-base, batch_per_rank: 1}").points[0].optimizer, plan::Optimizer::adam);
}

TEST_F(LoadExperiment, json_is_read_too) {
    const auto file = write(R"({"model": "resnet50", "batch_per_rank": 4, "ranks": [1, 2]})", "mine.json");
    EXPECT_THAT(load_experiment(file, {}, data()).points.at(0).ranks, ElementsAre(1, 2));
}

TEST_F(LoadExperiment, lists_make_every_combination_the_last_varying_fastest) {
    const auto points = load(
                            "model: [resnet50, vgg16]\nprecision: [fp32, bf16]\nranks: [1, 2]\nbatch_per_rank: 8\n"
                            "plan: {bucket: [1 MiB, 25 MiB]}\n")
                            .points;
    std::vector<std::string> labels;
    for (const auto& point : points) labels.push_back(point.label);
    EXPECT_THAT(
        labels,
        ElementsAre(
            "model=resnet50 precision=fp32 plan.bucket=1 MiB", "model=resnet50 precision=fp32 plan.bucket=25 MiB",
            "model=resnet50 precision=bf16 plan.bucket=1 MiB", "model=resnet50 precision=bf16 plan.bucket=25 MiB",
            "model=vgg16 precision=fp32 plan.bucket=1 MiB", "model=vgg16 precision=fp32 plan.bucket=25 MiB",
            "model=vgg16 precision=bf16 plan.bucket=1 MiB", "model=vgg16 precision=bf16 plan.bucket=25 MiB"));
    EXPECT_EQ(points[4].model.name, "vgg16");
    EXPECT_EQ(points[4].plan.bucket, 1_MiB);
    EXPECT_THAT(points[4].ranks, ElementsAre(1, 2));
}

TEST_F(LoadExperiment, each_machine_of_a_list_makes_a_point) {
    const auto points =
        load("model: resnet50\nmachine: [dgx-1v-16gb, {node: dgx-a100-80gb, count: 2}]\nbatch_per_rank: 8\n").points;
    ASSERT_EQ(points.size(), 2U);
    EXPECT_EQ(points[0].machine.text(), "dgx-1v-16gb");
    EXPECT_EQ(points[1].label, "machine={node: dgx-a100-80gb, count: 2}");
}

TEST_F(LoadExperiment, a_list_of_one_is_a_value) {
    const auto points =
        load("model: [resnet50]\nbatch_per_rank: [8]\nframework: [pytorch-ddp]\naccumulation: [2]\n").points;
    ASSERT_EQ(points.size(), 1U);
    EXPECT_EQ(points[0].label, "");
    EXPECT_EQ(points[0].plan_for({1, 1}).micro_batch, 4);
}

TEST_F(LoadExperiment, the_default_optimizer_follows_the_model_of_each_point) {
    const auto points = load("model: [resnet50, bert-base]\nbatch_per_rank: 1\n").points;
    EXPECT_EQ(points[0].optimizer, plan::Optimizer::sgd_momentum);
    EXPECT_EQ(points[1].optimizer, plan::Optimizer::adam);
}

TEST_F(LoadExperiment, a_series_is_told_apart_by_what_is_trained_only) {
    const std::string base = load(smallest).points[0].series_text();
    EXPECT_EQ(load("# other layout\nbatch_per_rank: 8\nmodel: 'resnet50'\n").points[0].series_text(), base);
    EXPECT_EQ(load(smallest, {"ranks=[1,2]", "steps=3", "warmup=1"}).points[0].series_text(), base);
    EXPECT_EQ(load(smallest, {"plan.bucket=25600 KiB"}).points[0].series_text(), base);
    EXPECT_EQ(load(smallest, {"plan.tp=1", "machine=host"}).points[0].series_text(), base);
    EXPECT_NE(load(smallest, {"plan.bucket=26 MiB"}).points[0].series_text(), base);
    EXPECT_NE(load(smallest, {"batch_per_rank=9"}).points[0].series_text(), base);
    EXPECT_NE(load(smallest, {"precision=bf16"}).points[0].series_text(), base);
    EXPECT_NE(load(smallest, {"seed=2"}).points[0].series_text(), base);
    EXPECT_NE(load(smallest, {"global_batch=8"}).points[0].series_text(), base);
}

TEST_F(LoadExperiment, a_merged_point_loads_as_the_same_point) {
    const auto points =
        load(
            "model: [resnet50, {base: gpt-small, seq_len: 64}]\nmachine: [host, {node: dgx-2, count: 1}]\n"
            "ranks: [1, 2]\nbatch_per_rank: 8\nplan: {bucket: [1234567 B, 25 MiB]}\n"
            "input: {bytes_per_sample: 12345 B, rate: 1.2345678 GB/s}\n")
            .points;
    ASSERT_EQ(points.size(), 8U);
    for (const Experiment& point : points) {
        const auto again = load(point.merged.canonical()).points;
        ASSERT_EQ(again.size(), 1U);
        EXPECT_EQ(again[0].merged.canonical(), point.merged.canonical());
        EXPECT_EQ(again[0].plan.bucket, point.plan.bucket);
        EXPECT_EQ(again[0].input->rate, point.input->rate);
    }
}

TEST_F(LoadExperiment, every_key_of_a_plan_is_read_and_loads_again) {
    const std::string text =
        "model: {base: gpt-small, vocab: 50304, layers: 8}\nbatch_per_rank: 8\nranks: [16, 32]\nplan: {tp: 2, pp: 4, "
        "vpp: 2, stage_blocks: [0, 1, 2, 1, 1, 1, 1, 1], cp: 2, sequence_parallel: true, async_tp: true, context: "
        "all-to-all, recompute: full, zero: 3, zero_keep: true, prefetch: 3, reshard_after_forward: false, "
        "shard_within_node: true, microbatch: 2}\n";
    const Experiment point = load(text).points.at(0);
    EXPECT_FALSE(point.batch.accumulation.has_value());
    const plan::Plan plan = point.plan_for({32, 16});
    EXPECT_EQ(plan.accumulation, 4);  // 8 samples of a replica in passes of 2
    EXPECT_EQ(plan.mesh.dp, 2);
    EXPECT_EQ(plan.split.schedule, plan::Schedule::interleaved);
    EXPECT_THAT(plan.split.stage_blocks, ElementsAre(0, 1, 2, 1, 1, 1, 1, 1));
    const Experiment again = load(point.merged.canonical()).points.at(0);
    EXPECT_EQ(again.merged.canonical(), point.merged.canonical());
    EXPECT_EQ(again.plan.split.prefetch, 3);
    EXPECT_TRUE(again.plan.shard_within_node);
    EXPECT_TRUE(again.plan.split.async_tp);
    EXPECT_EQ(again.plan.split.stage_blocks, point.plan.split.stage_blocks);
}

TEST_F(LoadExperiment, stage_blocks_are_one_value_and_other_lists_make_points) {
    const auto points = load(
                            "model: gpt-small\nbatch_per_rank: 4\nranks: 4\nplan: {pp: 4, stage_blocks: [2, 4, 4, 2], "
                            "zero: [0, 1], recompute: [none, full], microbatch: 1}\n")
                            .points;
    ASSERT_EQ(points.size(), 4U);
    EXPECT_EQ(points[3].label, "plan.zero=1 plan.recompute=full");
    EXPECT_THAT(points[3].plan.split.stage_blocks, ElementsAre(2, 4, 4, 2));
}

TEST_F(LoadExperiment, a_plan_is_checked_where_it_is_made) {
    Experiment point = load("{model: gpt-small, batch_per_rank: 1}").points.at(0);
    point.plan.tp = 2;
    EXPECT_THROW(point.plan_for({2, 2}), InputError);  // 50257 is odd
}

TEST_F(LoadExperiment, every_shipped_experiment_loads) {
    int count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "experiments")) {
        if (entry.path().extension() != ".yaml") continue;
        ++count;
        const auto loaded = load_experiment(entry.path(), {}, data());
        for (const auto& point : loaded.points)
            for (const int ranks : point.ranks)
                EXPECT_EQ(point.plan_for({ranks, ranks}).mesh.ranks(), ranks) << entry.path();
    }
    EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace lockstep::experiment
