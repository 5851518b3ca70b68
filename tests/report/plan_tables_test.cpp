#include "report/plan_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "step/builder.hpp"

namespace lockstep::report {
namespace {

using testing::HasSubstr;
using testing::Not;

step::StepGraph resnet50(int dp, int accumulation) {
    const config::DataPath data(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR});
    const model::Model model = model::load_model(data, "resnet50");
    plan::Plan plan;
    plan.mesh.dp = dp;
    plan.micro_batch = 4;
    plan.accumulation = accumulation;
    return step::build_step({.model = model, .plan = plan, .framework = {}, .placement = {dp, 8}, .input = {}});
}

TEST(PlanTables, text_names_the_batch_the_passes_every_bucket_and_the_memory) {
    const step::StepGraph graph = resnet50(2, 3);
    const std::string text = format_plan({graph, step::measure_memory(graph), "", Bytes{}});
    EXPECT_THAT(text, HasSubstr("global batch 24 = replicas 2 x micro-batch 4 x accumulation 3"));
    EXPECT_THAT(text, HasSubstr("3 x (forward, backward), gradient_sync, optimizer"));
    EXPECT_THAT(text, HasSubstr("bucket*.all_reduce"));
    EXPECT_THAT(text, HasSubstr("102.228"));  // 25,557,032 gradients of 4 bytes
    EXPECT_THAT(text, HasSubstr("activations"));
    EXPECT_THAT(text, Not(HasSubstr("no communication")));
}

TEST(PlanTables, text_of_one_rank_says_that_it_sends_nothing) {
    const step::StepGraph graph = resnet50(1, 1);
    EXPECT_THAT(format_plan({graph, step::measure_memory(graph), "", Bytes{}}), HasSubstr("no communication"));
}

TEST(PlanTables, json_has_the_same_figures) {
    const step::StepGraph graph = resnet50(2, 1);
    const PlanView view{graph, step::measure_memory(graph), "a100", Bytes{8e10}, 7};
    const std::string json = plan_json(view).dump(-1);
    EXPECT_THAT(json, HasSubstr("\"global_batch\":8"));
    EXPECT_THAT(json, HasSubstr("\"op\":\"bucket0.all_reduce\""));
    EXPECT_THAT(json, HasSubstr("\"multiplicity\":2"));
    EXPECT_THAT(json, HasSubstr("\"largest_micro_batch\":7"));
    EXPECT_THAT(json, HasSubstr("\"communicators\":[{\"name\":\"dp\",\"ranks\":2,\"nodes\":1"));
    EXPECT_THAT(json, HasSubstr("\"kind\":\"optimizer_update\""));
}

}  // namespace
}  // namespace lockstep::report
