#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "files.hpp"

namespace lockstep::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct BadValue {
    const char* line;  ///< added to a model and a batch
    const char* what;
};

class BadInput : public ExperimentFile, public testing::WithParamInterface<BadValue> {
protected:
    void SetUp() override {
        folder_ = std::filesystem::temp_directory_path() / "lockstep_bad_input" /
                  std::to_string(std::hash<std::string>{}(GetParam().line));
        std::filesystem::create_directories(folder_);
    }
};

TEST_P(BadInput, is_one_error_at_its_line) {
    const std::string failure = failure_of(std::string(smallest) + GetParam().line);
    EXPECT_THAT(failure, HasSubstr(GetParam().what));
    EXPECT_THAT(failure, HasSubstr("mine.yaml:3:"));
    EXPECT_EQ(std::ranges::count(failure, '\n'), 0) << failure;
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadInput,
    testing::Values(
        BadValue{"ranks: 0", "ranks: wants a whole number from 1 to 1000000, got '0'"},
        BadValue{"ranks: [-2]", "got '-2'"}, BadValue{"ranks: [1, two]", "got 'two'"},
        BadValue{"ranks: 1.5", "whole number"}, BadValue{"ranks: []", "empty list"},
        BadValue{"ranks: [1, 2, 1]", "1 is in the list twice"}, BadValue{"ranks: {a: 1}", "got a mapping"},
        BadValue{"ranks: 99999999999", "from 1 to 1000000"}, BadValue{"ranks:", "ranks"},
        BadValue{"steps: 0", "steps: wants a whole number from 1"}, BadValue{"steps: [1, 2]", "got a list"},
        BadValue{"warmup: -1", "warmup"}, BadValue{"seed: -1", "seed"}, BadValue{"accumulation: 0", "accumulation"},
        BadValue{"threads_per_rank: -1", "threads_per_rank"}, BadValue{"precision: fp31", "did you mean 'fp32'"},
        BadValue{"precision: [fp32, fp32]", "fp32 is in the list twice"},
        BadValue{"framework: pytorch-dpp", "did you mean 'pytorch-ddp'"}, BadValue{"framework: {a: b}", "framework"},
        BadValue{"optimizer: sgd", "sgd-momentum, adam"}, BadValue{"machine: {node: dgx-2, count: 0}", "count"},
        BadValue{"machine: {count: 2}", "key 'node' is missing"},
        BadValue{"machine: {node: dgx-2, cuont: 2}", "'count'"}, BadValue{"machine:", "machine: wants a name"},
        BadValue{"machine: [host, [dgx-2]]", "a list in a list"},
        BadValue{"global_batch: 64", "is given beside batch_per_rank"},
        BadValue{"plan: {tp: 0}", "tp: wants a whole number from 1"}, BadValue{"plan: {zero: 4}", "from 0 to 3"},
        BadValue{"plan: {recompute: selective}", "this model has none"},
        BadValue{"plan: {vpp: 2}", "use pp of 2 or more"}, BadValue{"plan: {stage_blocks: [17]}", "17 blocks"},
        BadValue{"plan: {pp: [1, 1]}", "1 is in the list twice"},
        BadValue{"plan: {bucket: 25}", "bucket: wants a size"},
        BadValue{"plan: {bukcet: 25 MiB}", "did you mean 'bucket'"}, BadValue{"plan: 7", "plan"},
        BadValue{"input: {bytes_per_sample: 0, rate: 1 GB/s}", "bytes_per_sample: wants more than 0"},
        BadValue{"input: {bytes_per_sample: 1 kB, rate: 0}", "rate: wants more than 0"},
        BadValue{"input: {rate: 1 GB/s}", "'bytes_per_sample' is missing"},
        BadValue{"input: {bytes_per_sample: 1 kB, rate: 1 GiB}", "rate"}, BadValue{"stesp: 10", "did you mean 'steps'"},
        BadValue{"model: vgg16", "duplicate key 'model'"}));

using BadFile = ExperimentFile;

TEST_F(BadFile, a_batch_of_zero_is_refused) {
    EXPECT_THAT(failure_of("model: resnet50\nbatch_per_rank: 0\n"),
                AllOf(HasSubstr("mine.yaml:2:17"), HasSubstr("from 1 to"), HasSubstr("got '0'")));
    EXPECT_THAT(failure_of("model: resnet50\nglobal_batch: -8\n"), HasSubstr("got '-8'"));
}

TEST_F(BadFile, a_missing_batch_names_both_kinds) {
    EXPECT_THAT(failure_of("model: resnet50\n"), AllOf(HasSubstr("batch_per_rank"), HasSubstr("global_batch")));
}

TEST_F(BadFile, a_missing_model_is_named) {
    EXPECT_THAT(failure_of("batch_per_rank: 1\n"), HasSubstr("key 'model' is missing"));
}

TEST_F(BadFile, an_unknown_model_names_the_nearest) {
    EXPECT_THAT(failure_of("model: resnet5O\nbatch_per_rank: 1\n"),
                AllOf(HasSubstr("mine.yaml:1:8"), HasSubstr("did you mean 'resnet50'")));
}

TEST_F(BadFile, the_errors_of_a_model_file_are_among_those_of_the_experiment) {
    const auto model = write("name: broken\nlayers: 7\nnonsense: 1\n", "broken.yaml");
    const std::string failure = failure_of("model: " + model.string() + "\nbatch_per_rank: 0\n");
    EXPECT_THAT(failure, AllOf(HasSubstr("broken.yaml:"), HasSubstr("mine.yaml:2:17")));
}

TEST_F(BadFile, every_error_comes_at_once_and_each_once) {
    const std::string failure = failure_of(
        "model: [resnet50, resnet5O]\nranks: [0, 2]\nbatch_per_rank: [0, 8]\nprecision: [fp33, bf16]\n"
        "framework: nothing\nplan: {tp: 0, overlap: 7}\nsteps: 0\nwamrup: 1\n");
    for (const char* const place : {":1:19", ":2:9", ":3:18", ":4:13", ":5:12", ":6:12", ":6:24", ":7:8", ":8:1"})
        EXPECT_THAT(failure, HasSubstr(std::string("mine.yaml") + place));
    EXPECT_EQ(std::ranges::count(failure, '\n'), 8) << failure;
}

TEST_F(BadFile, a_global_batch_has_to_fit_every_rank_count) {
    EXPECT_THAT(failure_of("model: resnet50\nglobal_batch: 64\nranks: [1, 2, 3]\n"),
                AllOf(HasSubstr("mine.yaml:2:15"), HasSubstr("with ranks=3"), HasSubstr("use 63 or 66")));
}

TEST_F(BadFile, what_a_model_refuses_of_a_plan_is_said_once_at_the_plan) {
    const std::string failure =
        failure_of("model: gpt-small\nbatch_per_rank: 4\nranks: [8, 16]\nplan: {tp: 8, pp: 1, ep: 1}\n");
    EXPECT_THAT(failure,
                AllOf(HasSubstr("mine.yaml:4:7: plan: tp=8 doesn't divide heads=12; use tp=1, 2, 3, 4, 6 or 12"),
                      HasSubstr("kv_heads=12"), HasSubstr("vocab: 50304")));
    EXPECT_EQ(std::ranges::count(failure, '\n'), 2) << failure;
}

TEST_F(BadFile, what_only_some_worlds_refuse_names_them) {
    const std::string failure = failure_of(
        "model: {base: gpt-small, layers: 1, hidden: 2, heads: 1, vocab: 2, seq_len: 4}\nbatch_per_rank: 1\n"
        "ranks: [1, 2, 256, 512]\nplan: {zero: 3}\n");
    EXPECT_THAT(failure, AllOf(HasSubstr("with ranks=256: zero=3 spreads 74 parameters"), HasSubstr("with ranks=512")));
}

TEST_F(BadFile, a_world_that_is_not_the_product_is_refused_beside_what_the_model_refuses) {
    const std::string failure =
        failure_of("model: gpt-small\nbatch_per_rank: 4\nranks: [8, 20]\nplan: {tp: 8, ep: 2}\n");
    EXPECT_THAT(failure, AllOf(HasSubstr("mine.yaml:3:8: ranks: ranks=8 can't be split into replicas of 16"),
                               HasSubstr("ranks=20 can't be split"), HasSubstr("use 16 or 32 ranks"),
                               HasSubstr("plan: tp=8 doesn't divide heads=12"), HasSubstr("use ep=1")));
}

TEST_F(BadFile, too_many_points_are_refused_with_the_lengths_of_the_lists) {
    std::string batches;
    for (int i = 1; i <= 101; ++i) batches += (i > 1 ? ", " : "") + std::to_string(i);
    const std::string failure =
        failure_of("model: resnet50\nbatch_per_rank: [" + batches + "]\nplan: {microbatch: [" + batches + "]}\n");
    EXPECT_THAT(failure, AllOf(HasSubstr("101 of batch_per_rank, 101 of plan.microbatch"), HasSubstr("10000 points")));
}

TEST_F(BadFile, a_batch_that_passes_do_not_divide_is_refused_at_the_batch) {
    EXPECT_THAT(failure_of(std::string(smallest) + "accumulation: 3\n"),
                AllOf(HasSubstr("mine.yaml:2:17"), HasSubstr("not divisible by accumulation=3; use 6 or 9")));
    EXPECT_THAT(failure_of(std::string(smallest) + "plan: {microbatch: 3}\n"),
                AllOf(HasSubstr("mine.yaml:2:17"), HasSubstr("or microbatch of 2 or 4")));
}

TEST_F(BadFile, a_list_where_a_mapping_belongs_is_refused) {
    EXPECT_THAT(failure_of("- model: resnet50\n"), HasSubstr("experiment: wants keys and values"));
    EXPECT_THAT(failure_of("resnet50\n"), HasSubstr("mine.yaml:1:1"));
}

TEST_F(BadFile, an_empty_list_is_refused) {
    EXPECT_THAT(failure_of("model: []\nbatch_per_rank: 1\n"), HasSubstr("model: an empty list"));
}

TEST_F(BadFile, a_file_that_is_not_there_is_named) {
    EXPECT_THROW(load_experiment(folder_ / "no.yaml", {}, data()), InputError);
}

TEST_F(BadFile, malformed_text_is_located) {
    EXPECT_THAT(failure_of("model: [resnet50\nbatch: 1\n"), HasSubstr("mine.yaml:"));
    EXPECT_THAT(failure_of(""), HasSubstr("empty"));
}

TEST_F(BadFile, an_error_of_a_setting_is_located_at_the_setting) {
    EXPECT_THAT(failure_of(smallest, {"ranks=0"}),
                AllOf(HasSubstr("--set ranks=0: ranks: wants a whole number"), Not(HasSubstr("mine.yaml"))));
    EXPECT_THAT(failure_of(smallest, {"batch=2"}), HasSubstr("--set batch=2: experiment: unknown key 'batch'"));
    EXPECT_THAT(failure_of(smallest, {"plan.bucket=25"}), HasSubstr("--set plan.bucket=25: bucket: wants a size"));
    EXPECT_THAT(failure_of(smallest, {"model.layers=3"}), HasSubstr("--set model.layers=3: "));
    EXPECT_THAT(failure_of(smallest, {"plan..bucket=3"}), HasSubstr("--set plan..bucket=3: "));
    EXPECT_THAT(failure_of(smallest, {"ranks="}), HasSubstr("--set ranks=: holds no value"));
    EXPECT_THAT(failure_of(smallest, {"ranks=[1"}), HasSubstr("--set ranks=[1: "));
}

TEST_F(BadFile, the_errors_of_file_and_settings_come_together) {
    EXPECT_THAT(failure_of("model: resnet50\nbatch_per_rank: 0\n", {"steps=0", "warmup=[1"}),
                AllOf(HasSubstr("mine.yaml:2:17"), HasSubstr("--set steps=0"), HasSubstr("--set warmup=[1")));
}

}  // namespace
}  // namespace lockstep::experiment
