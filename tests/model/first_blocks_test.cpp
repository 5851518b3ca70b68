#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/first_blocks.hpp"
#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

Model small_gpt(const std::string& more = "") {
    config::Diagnostics diagnostics;
    Model model = load_model(config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}),
                             config::parse_text("{base: gpt-small" + more + "}", "test"), diagnostics);
    diagnostics.throw_if_any();
    return model;
}

/// GPT-2 small without 9 of its 12 blocks of 12 h^2 + 13 h = 7,087,872 parameters (h = 768): 124,439,808 - 9 x that.
TEST(FirstBlocks, leave_what_is_around_the_blocks) {
    const Model cut = with_first_blocks(small_gpt(), 3);
    EXPECT_EQ(cut.parameter_count(), 124'439'808 - 9 * 7'087'872);
    EXPECT_EQ(forward_multiply_adds(cut), forward_multiply_adds(small_gpt(", layers: 3")));
    EXPECT_EQ(cut.layers.size(), small_gpt(", layers: 3").layers.size());
}

TEST(FirstBlocks, make_the_model_that_has_as_many_blocks) {
    const Model cut = with_first_blocks(small_gpt(), 2);
    const Model whole = small_gpt(", layers: 2");
    for (std::size_t i = 0; i < whole.layers.size(); ++i) {
        EXPECT_EQ(cut.layers[i].kind, whole.layers[i].kind) << i;
        EXPECT_EQ(cut.layers[i].inputs, whole.layers[i].inputs) << i;
        EXPECT_EQ(cut.layers[i].parameters, whole.layers[i].parameters) << i;
    }
}

TEST(FirstBlocks, tell_of_all_in_transformers_with_and_without_experts) {
    for (const char* name : {"gpt3-175b", "llama-3.1-70b", "mixtral-8x7b", "bert-large"})
        EXPECT_EQ(why_blocks_differ(load_shipped(name)), "") << name;
}

TEST(FirstBlocks, are_refused_where_blocks_differ) {
    EXPECT_NE(why_blocks_differ(load_shipped("resnet50")), "");
    EXPECT_NE(why_blocks_differ(load_shipped("vgg16")), "");
    EXPECT_THROW(with_first_blocks(load_shipped("resnet50"), 1), LogicError);
    EXPECT_THROW(with_first_blocks(small_gpt(), 13), LogicError);
}

}  // namespace
}  // namespace lockstep::model
