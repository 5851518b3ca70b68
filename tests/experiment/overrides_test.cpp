#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.hpp"

namespace lockstep::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseOverride, splits_at_the_first_equals_sign) {
    const Override change = parse_override("model=a=b", "--set");
    EXPECT_EQ(change.path, "model");
    EXPECT_EQ(change.value, "a=b");
    EXPECT_EQ(change.origin, "--set");
}

TEST(ParseOverride, text_without_a_path_or_a_value_is_a_usage_error) {
    EXPECT_THROW(parse_override("ranks", "--set"), UsageError);
    EXPECT_THROW(parse_override("=3", "--set"), UsageError);
}

using Overrides = ExperimentFile;

TEST_F(Overrides, replace_what_the_file_says) {
    const auto point =
        load("model: resnet50\nbatch_per_rank: 8\nplan: {bucket: 1 MiB}\n",
             {"batch_per_rank=2", "plan.bucket=5 MiB", "ranks=[1, 4]", "plan.overlap=false", "model=vgg16"})
            .points.at(0);
    EXPECT_EQ(point.batch.per_rank, 2);
    EXPECT_EQ(point.plan.bucket, 5_MiB);
    EXPECT_FALSE(point.plan.overlap);
    EXPECT_THAT(point.ranks, ElementsAre(1, 4));
    EXPECT_EQ(point.model.name, "vgg16");
}

TEST_F(Overrides, the_last_of_two_wins) { EXPECT_EQ(load(smallest, {"steps=3", "steps=4"}).points[0].steps, 4); }

TEST_F(Overrides, a_list_makes_points) {
    EXPECT_EQ(load(smallest, {"precision=[fp32, bf16, tf32]"}).points.size(), 3U);
}

TEST_F(Overrides, of_the_other_batch_turns_weak_into_strong_scaling_and_back) {
    const auto strong = load(smallest, {"global_batch=64"}).points[0];
    EXPECT_EQ(strong.batch.global, 64);
    EXPECT_EQ(strong.batch.per_rank, 0);
    const auto weak = load("model: resnet50\nglobal_batch: 64\n", {"batch_per_rank=2"}).points[0];
    EXPECT_EQ(weak.batch.global, 0);
    EXPECT_EQ(weak.batch.per_rank, 2);
    EXPECT_THAT(failure_of(smallest, {"global_batch=64", "batch_per_rank=2"}), HasSubstr("beside batch_per_rank"));
}

TEST_F(Overrides, every_value_knows_its_origin) {
    const auto loaded = load_experiment(write("model: resnet50\nbatch_per_rank: 8\nplan:\n  overlap: true\n"),
                                        {{"steps", "5", "--set"}, {"seed", "7", "LOCKSTEP_SEED"}}, data());
    const std::string file = loaded.file.string();
    EXPECT_EQ(loaded.origins.at("model"), file + ":1");
    EXPECT_EQ(loaded.origins.at("batch_per_rank"), file + ":2");
    EXPECT_EQ(loaded.origins.at("plan.overlap"), file + ":4");
    EXPECT_EQ(loaded.origins.at("plan.bucket"), "framework pytorch-ddp");
    EXPECT_EQ(loaded.origins.at("optimizer"), "default of the model");
    EXPECT_EQ(loaded.origins.at("steps"), "--set");
    EXPECT_EQ(loaded.origins.at("seed"), "LOCKSTEP_SEED");
    EXPECT_EQ(loaded.origins.at("warmup"), "default");
}

TEST_F(Overrides, print_config_shows_values_and_origins) {
    const auto loaded =
        load_experiment(write("ranks: [1, 2]\nmodel: {base: gpt-small, seq_len: 64}\nbatch_per_rank: 8\n"),
                        {{"steps", "5", "--set"}}, data());
    std::string expected = R"(model.base = gpt-small      # FILE:2
model.seq_len = 64          # FILE:2
machine = host              # default
ranks = [1, 2]              # FILE:1
precision = fp32            # default
framework = pytorch-ddp     # default
batch_per_rank = 8          # FILE:3
accumulation = 1            # default
optimizer = adam            # default of the model
plan.bucket = 25 MiB        # framework pytorch-ddp
plan.first_bucket = 1 MiB   # framework pytorch-ddp
plan.overlap = true         # framework pytorch-ddp
steps = 5                   # --set
warmup = 10                 # default
seed = 1                    # default
threads_per_rank = 0        # default
)";
    std::string text = format_config(loaded);
    const std::string file = loaded.file.string();
    for (auto at = text.find(file); at != std::string::npos; at = text.find(file))
        text.replace(at, file.size(), "FILE");
    EXPECT_EQ(text, expected);
}

TEST_F(Overrides, what_a_default_makes_differ_between_points_is_left_to_the_points) {
    const auto loaded = load("model: [resnet50, bert-base]\nbatch_per_rank: 8\n");
    EXPECT_EQ(loaded.merged.find("optimizer"), nullptr);
    EXPECT_EQ(loaded.points[0].merged.find("optimizer")->text(), "sgd-momentum");
    EXPECT_EQ(loaded.points[1].merged.find("optimizer")->text(), "adam");
}

}  // namespace
}  // namespace lockstep::experiment
