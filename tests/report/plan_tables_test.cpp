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
    const std::string text = format_plan(graph, step::plan_memory(graph, graph.classes[0]));
    EXPECT_THAT(text, HasSubstr("global batch 24 = dp 2 x micro-batch 4 x accumulation 3"));
    EXPECT_THAT(text, HasSubstr("3 x (forward, backward), gradient_sync, optimizer"));
    EXPECT_THAT(text, HasSubstr("bucket0.all_reduce"));
    EXPECT_THAT(text, HasSubstr("8.196"));  // fc: 2,049,000 gradients of 4 bytes
    EXPECT_THAT(text, HasSubstr("activations"));
    EXPECT_THAT(text, Not(HasSubstr("no communication")));
}

TEST(PlanTables, text_of_one_rank_says_that_it_sends_nothing) {
    const step::StepGraph graph = resnet50(1, 1);
    EXPECT_THAT(format_plan(graph, step::measure_memory(graph, graph.classes[0])), HasSubstr("no communication"));
}

TEST(PlanTables, json_has_the_same_figures) {
    const step::StepGraph graph = resnet50(2, 1);
    const step::MemoryPlan memory = step::plan_memory(graph, graph.classes[0]);
    const std::string json = plan_json(graph, memory).dump(-1);
    EXPECT_THAT(json, HasSubstr("\"global_batch\":8"));
    EXPECT_THAT(json, HasSubstr("\"op\":\"bucket0.all_reduce\""));
    EXPECT_THAT(json, HasSubstr("\"multiplicity\":2"));
    EXPECT_THAT(json, HasSubstr("\"arena_bytes\":" + std::to_string(memory.arena_bytes)));
    EXPECT_THAT(json, HasSubstr("\"kind\":\"optimizer_update\""));
}

}  // namespace
}  // namespace lockstep::report
