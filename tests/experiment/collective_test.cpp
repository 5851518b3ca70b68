#include "experiment/collective.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.hpp"

namespace lockstep::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using CollectiveExperiment = ExperimentFile;

TEST_F(CollectiveExperiment, kind_bytes_and_dtype_are_read) {
    const auto loaded = load("collective: {kind: all_gather, bytes: 16 MiB, dtype: bf16}\nranks: [2, 4]\n");
    ASSERT_EQ(loaded.points.size(), 1U);
    const CollectiveRequest& collective = *loaded.points[0].collective;
    EXPECT_EQ(collective.kind, CollectiveKind::all_gather);
    EXPECT_EQ(collective.bytes, 16_MiB);
    EXPECT_EQ(collective.dtype, DType::bf16);
    EXPECT_EQ(collective.title(), "all_gather of 16 MiB");
    EXPECT_EQ(loaded.points[0].plan_for({4, 4}).mesh.dp, 4);
    EXPECT_EQ(loaded.merged.find("framework"), nullptr);
    EXPECT_EQ(loaded.points[0].merged.find("precision"), nullptr);
}

TEST_F(CollectiveExperiment, lists_make_points_and_fp32_is_the_default) {
    const auto loaded = load("collective: {kind: [all_reduce, broadcast], bytes: [1 MiB, 1 GiB]}\nranks: 8\n");
    ASSERT_EQ(loaded.points.size(), 4U);
    EXPECT_EQ(loaded.points[1].label, "collective.kind=all_reduce collective.bytes=1 GiB");
    EXPECT_EQ(loaded.points[1].collective->dtype, DType::fp32);
    EXPECT_NE(loaded.points[0].series_text(), loaded.points[1].series_text());
}

TEST_F(CollectiveExperiment, keys_that_say_how_a_model_is_trained_are_refused_beside_it) {
    const std::string failure = failure_of(
        "collective: {kind: all_reduce, bytes: 1 MiB}\nranks: 2\nmodel: resnet50\nbatch_per_rank: 8\nplan: {tp: 2}\n"
        "framework: pytorch-ddp\n");
    for (const char* key : {"model", "batch_per_rank", "plan", "framework"})
        EXPECT_THAT(failure, HasSubstr(std::string(key) + ": doesn't apply to a collective"));
    EXPECT_THAT(failure, HasSubstr("mine.yaml:4:"));
}

TEST_F(CollectiveExperiment, bad_values_are_refused_at_their_place) {
    const auto refusal = [&](const std::string& collective, const std::string& ranks = "2") {
        return failure_of(fmt::format("ranks: {}\ncollective: {}\n", ranks, collective));
    };
    EXPECT_THAT(refusal("{kind: allreduce, bytes: 1 MiB}"),
                AllOf(HasSubstr("did you mean 'all_reduce'"), HasSubstr("2:20")));
    EXPECT_THAT(refusal("{kind: all_reduce, bytes: 0}"), HasSubstr("bytes: wants from one fp32"));
    EXPECT_THAT(refusal("{kind: all_reduce, bytes: -1 MiB}"), HasSubstr("negative"));
    EXPECT_THAT(refusal("{kind: all_reduce}"), HasSubstr("'bytes' is missing"));
    EXPECT_THAT(refusal("{bytes: 1 MiB}"), HasSubstr("'kind' is missing"));
    EXPECT_THAT(refusal("{kind: all_reduce, bytes: 1 MiB, dtype: fp8}"), HasSubstr("fp32, bf16, fp16"));
    EXPECT_THAT(refusal("{kind: all_reduce, bytes: 1 MiB, type: fp8}"), HasSubstr("did you mean 'dtype'"));
    EXPECT_THAT(refusal("{kind: all_reduce, bytes: 1 MiB}", "[1, 2]"), HasSubstr("moves nothing"));
    EXPECT_THAT(refusal("{kind: all_gather, bytes: 8 B}", "[2, 4]"), HasSubstr("each of 4 ranks"));
    EXPECT_THAT(refusal("all_reduce"), HasSubstr("collective"));
}

}  // namespace
}  // namespace lockstep::experiment
