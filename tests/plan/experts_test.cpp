// What of a plan doesn't suit a model with experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planned_models.hpp"

namespace lockstep::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> refusals(const Mesh& mesh, int zero = 0, const std::string& model = "mixtral-8x7b") {
    Plan plan;
    plan.mesh = mesh;
    plan.split.zero = zero;
    plan.accumulation = 8;
    return plan_refusals(plan, model_named(model));
}

TEST(ExpertPlans, ep_divides_the_experts) {
    for (const int ep : {1, 2, 4, 8}) EXPECT_THAT(refusals({.ep = ep, .dp = 2}), IsEmpty()) << ep;
    EXPECT_THAT(refusals({.ep = 3}), ElementsAre(HasSubstr("ep=3 doesn't divide 8 experts; use ep=1, 2, 4 or 8")));
    EXPECT_THAT(refusals({.ep = 2}, 0, "llama-3.1-8b"), ElementsAre(HasSubstr("this model has none; use ep=1")));
}

TEST(ExpertPlans, pipelines_sequences_and_shards_go_with_experts) {
    EXPECT_THAT(refusals({.cp = 2, .ep = 8, .dp = 2, .replica = 2, .pp = 4}, 3), IsEmpty());
    EXPECT_THAT(refusals({.ep = 8, .dp = 2}, 1), IsEmpty());
}

TEST(ExpertPlans, what_is_not_built_or_makes_no_sense_names_the_way_out) {
    EXPECT_THAT(refusals({.tp = 2, .ep = 4}), ElementsAre(HasSubstr("tp=2 with experts is not built yet; use tp=1")));
    EXPECT_THAT(refusals({.ep = 8}, 2), ElementsAre(HasSubstr("use zero=0, or cp or dp of 2 or more")));
}

}  // namespace
}  // namespace lockstep::plan
