#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "plan/framework.hpp"

namespace lockstep::plan {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

config::DataPath shipped() { return config::DataPath(std::vector<fs::path>{LOCKSTEP_SOURCE_DIR}); }

/// A folder for profiles of a test, removed at its end, in front of the shipped ones.
class FrameworkFile : public testing::Test {
protected:
    void SetUp() override {
        const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = fs::temp_directory_path() / (std::string("lockstep_framework_") + test->name());
        fs::create_directories(folder_ / "models/frameworks");
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / "models/frameworks" / (name + ".yaml")) << text;
    }
    config::DataPath data() const { return config::DataPath(std::vector<fs::path>{folder_, LOCKSTEP_SOURCE_DIR}); }
    std::string failure_of(const std::string& text) const {
        write("mine", text);
        try {
            load_framework(data(), "mine");
        } catch (const InputError& failure) { return failure.what(); }
        return "loaded";
    }

private:
    fs::path folder_;
};

TEST(Framework, ddp_has_the_defaults_pytorch_documents) {
    const Framework ddp = load_framework(shipped(), "pytorch-ddp");
    EXPECT_EQ(ddp.name, "pytorch-ddp");
    EXPECT_EQ(ddp.bucket, 25_MiB);
    EXPECT_EQ(ddp.first_bucket, 1_MiB);
    EXPECT_EQ(ddp.bucket_storage, BucketStorage::copied);
    EXPECT_EQ(ddp.attention, AttentionAlgorithm::flash);
    EXPECT_EQ(ddp.optimizer_fusion, OptimizerFusion::fused);
    EXPECT_EQ(ddp.launch, Launch::asynchronous);
    EXPECT_EQ(ddp.wire_dtype, std::nullopt);
    EXPECT_TRUE(ddp.overlap);
    EXPECT_NEAR(ddp.host_per_op.value, 6e-6, 1e-12);
}

TEST(Framework, every_shipped_profile_loads_and_says_where_each_trait_is_from) {
    const auto names = framework_names(shipped());
    EXPECT_THAT(names, testing::Contains("pytorch-ddp"));
    for (const auto& name : names) {
        const Framework framework = load_framework(shipped(), name);
        EXPECT_THAT(framework.title, Not(IsEmpty())) << name;
        EXPECT_THAT(framework.sources, AllOf(SizeIs(13), Each(HasSubstr(": ")))) << name;  // one for each trait
    }
}

TEST(Framework, a_profile_built_on_another_changes_what_it_names) {
    const Framework view = load_framework(shipped(), "pytorch-ddp-bucket-view");
    EXPECT_EQ(view.bucket_storage, BucketStorage::view);
    EXPECT_EQ(view.bucket, 25_MiB);
    EXPECT_EQ(view.name, "pytorch-ddp-bucket-view");
    EXPECT_EQ(load_framework(shipped(), "pytorch-ddp-fp16-hook").wire_dtype, DType::fp16);
    const Framework old = load_framework(shipped(), "pytorch-1-ddp");
    EXPECT_EQ(old.attention, AttentionAlgorithm::unfused);
    EXPECT_EQ(old.optimizer_fusion, OptimizerFusion::per_parameter);
}

TEST(Framework, horovod_fuses_64_MiB_and_waits_half_a_cycle_of_5_ms) {
    const Framework horovod = load_framework(shipped(), "horovod");
    EXPECT_EQ(horovod.bucket, 64_MiB);
    EXPECT_NEAR(horovod.collective_delay.value, 2.5e-3, 1e-12);
    EXPECT_EQ(load_framework(shipped(), "pytorch-ddp").collective_delay.value, 0);
}

TEST(Framework, apex_sends_gradients_in_the_type_of_computation) {
    const Framework apex = load_framework(shipped(), "apex-ddp");
    EXPECT_TRUE(apex.wire_as_computed);
    EXPECT_EQ(apex.wire_dtype, std::nullopt);
    EXPECT_FALSE(load_framework(shipped(), "horovod").wire_as_computed);
}

TEST(Framework, an_unknown_name_is_refused_with_the_nearest) {
    try {
        load_framework(shipped(), "pytorch-dpp");
        FAIL() << "loaded";
    } catch (const InputError& failure) { EXPECT_THAT(failure.what(), HasSubstr("did you mean 'pytorch-ddp'")); }
}

TEST_F(FrameworkFile, every_trait_can_be_set) {
    write("mine", R"(
base: pytorch-ddp
title: mine
overlap: {value: false, assumed: test}
wire_dtype: {value: bf16, assumed: test}
bucket: {value: 3 MiB, assumed: test}
first_bucket: {value: 2 MiB, assumed: test}
memory_format: {value: packed, assumed: test}
host_per_op: {value: 11 us, source: measured}
launch: {value: blocking, assumed: test}
run_ahead: {value: 7, assumed: test}
collective_delay: {value: 3 ms, assumed: test}
elementwise_fusion: {value: chains, assumed: test}
)");
    const Framework mine = load_framework(data(), "mine");
    EXPECT_FALSE(mine.overlap);
    EXPECT_EQ(mine.wire_dtype, DType::bf16);
    EXPECT_EQ(mine.bucket, 3_MiB);
    EXPECT_EQ(mine.first_bucket, 2_MiB);
    EXPECT_EQ(mine.memory_format, MemoryFormat::packed);
    EXPECT_NEAR(mine.host_per_op.value, 11e-6, 1e-12);
    EXPECT_EQ(mine.launch, Launch::blocking);
    EXPECT_EQ(mine.run_ahead, 7);
    EXPECT_NEAR(mine.collective_delay.value, 3e-3, 1e-12);
    EXPECT_EQ(mine.elementwise_fusion, ElementwiseFusion::chains);
    EXPECT_THAT(mine.sources, testing::Contains("host_per_op: measured"));
    EXPECT_THAT(mine.sources, testing::Contains("overlap: assumed: test"));
}

TEST_F(FrameworkFile, a_trait_without_an_origin_is_refused) {
    EXPECT_THAT(failure_of("{base: pytorch-ddp, title: t, overlap: {value: true}}"), HasSubstr("'source'"));
    EXPECT_THAT(failure_of("{base: pytorch-ddp, title: t, overlap: {value: true, source: a, assumed: b}}"),
                HasSubstr("one of them"));
}

TEST_F(FrameworkFile, a_bare_value_is_refused) {
    EXPECT_THAT(failure_of("{base: pytorch-ddp, title: t, overlap: true}"),
                HasSubstr("overlap: wants keys and values"));
    EXPECT_THAT(failure_of("{base: pytorch-ddp, title: t, overlap: {source: a}}"), HasSubstr("'value' is missing"));
}

TEST_F(FrameworkFile, all_errors_of_a_profile_come_at_once) {
    const std::string failure = failure_of(
        "base: pytorch-ddp\ntitle: t\nbucket: {value: 25, source: a}\nlaunch: {value: sometimes, source: a}\n"
        "overlapp: {value: true, source: a}\nrun_ahead: {value: 0, source: a}\nhost_per_op: {value: 2 s, source: a}\n");
    EXPECT_THAT(failure,
                AllOf(HasSubstr(":3:"), HasSubstr(":4:"), HasSubstr(":5:"), HasSubstr(":6:"), HasSubstr(":7:")));
    EXPECT_THAT(failure, HasSubstr("did you mean 'overlap'"));
    EXPECT_THAT(failure, HasSubstr("asynchronous, blocking"));
}

TEST_F(FrameworkFile, without_a_base_every_trait_must_be_there) {
    EXPECT_THAT(failure_of("title: t"), AllOf(HasSubstr("'overlap' is missing"), HasSubstr("'run_ahead' is missing")));
}

TEST_F(FrameworkFile, a_circle_of_bases_is_refused) {
    write("other", "{base: mine, title: t}");
    EXPECT_THAT(failure_of("{base: other, title: t}"), HasSubstr("circle"));
}

TEST_F(FrameworkFile, an_unknown_base_is_refused) {
    EXPECT_THAT(failure_of("{base: pytorch-dpp, title: t}"), HasSubstr("did you mean 'pytorch-ddp'"));
}

}  // namespace
}  // namespace lockstep::plan
