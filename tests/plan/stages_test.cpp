#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/stages.hpp"
#include "planned_models.hpp"

namespace lockstep::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan pipeline(int pp, int vpp = 1, std::vector<int> stage_blocks = {}) {
    Plan plan;
    plan.mesh.pp = pp;
    plan.split.vpp = vpp;
    if (vpp > 1) plan.split.schedule = Schedule::interleaved;
    plan.split.stage_blocks = std::move(stage_blocks);
    return plan;
}

std::string failure_of(int blocks, const Plan& plan) {
    try {
        blocks_of_chunks(blocks, plan);
    } catch (const InputError& failure) { return failure.what(); }
    return "fits";
}

int chunk_of(const model::Model& model, const std::vector<int>& chunks, std::string_view name) {
    const auto place = std::ranges::find(model.layers, name, &model::Layer::name);
    return chunks.at(static_cast<std::size_t>(place - model.layers.begin()));
}

TEST(Stages, blocks_are_dealt_out_evenly) {
    EXPECT_THAT(blocks_of_chunks(12, pipeline(4)), ElementsAre(3, 3, 3, 3));
    EXPECT_THAT(blocks_of_chunks(12, pipeline(2, 3)), ElementsAre(2, 2, 2, 2, 2, 2));
    EXPECT_THAT(blocks_of_chunks(0, pipeline(1)), ElementsAre(0));
}

TEST(Stages, embedding_is_with_the_first_block_and_head_with_the_last) {
    const model::Model model = model_named("gpt-small");
    const auto chunks = chunk_of_layer(model, pipeline(4));
    EXPECT_EQ(chunk_of(model, chunks, "embedding"), 0);
    EXPECT_EQ(chunk_of(model, chunks, "block.2.add2"), 0);
    EXPECT_EQ(chunk_of(model, chunks, "block.3.norm1"), 1);
    EXPECT_EQ(chunk_of(model, chunks, "block.11.add2"), 3);
    EXPECT_EQ(chunk_of(model, chunks, "output"), 3);
    EXPECT_EQ(chunk_of(model, chunks, "loss"), 3);
    EXPECT_THAT(cut_refusals(model, chunks, 4), IsEmpty());
}

// Llama team 2024, section 3.3.2: one layer less on the first and the last stage.
TEST(Stages, llama_405b_on_16_stages_wants_the_split_of_its_authors) {
    EXPECT_THAT(failure_of(126, pipeline(16)),
                AllOf(HasSubstr("126 blocks don't divide into pp=16"), HasSubstr("pp=1, 2, 3, 6, 7"),
                      HasSubstr("stage_blocks: [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]")));
    std::vector<int> blocks(16, 8);
    blocks.front() = blocks.back() = 7;
    const model::Model model = model_named("llama-3.1-405b");
    const auto chunks = chunk_of_layer(model, pipeline(16, 1, blocks));
    EXPECT_EQ(chunk_of(model, chunks, "block.6.add2"), 0);
    EXPECT_EQ(chunk_of(model, chunks, "block.7.norm1"), 1);
    EXPECT_EQ(chunk_of(model, chunks, "block.119.norm1"), 15);
    EXPECT_EQ(chunk_of(model, chunks, "loss"), 15);
}

TEST(Stages, the_first_and_the_last_chunk_may_hold_embedding_and_head_alone) {
    const model::Model model = model_named("gpt-small");
    const auto chunks = chunk_of_layer(model, pipeline(4, 1, {0, 6, 6, 0}));
    EXPECT_EQ(chunk_of(model, chunks, "embedding_dropout"), 0);
    EXPECT_EQ(chunk_of(model, chunks, "block.0.norm1"), 1);
    EXPECT_EQ(chunk_of(model, chunks, "norm"), 3);
    EXPECT_THAT(cut_refusals(model, chunks, 4), IsEmpty());
    const auto hollow = chunk_of_layer(model, pipeline(4, 1, {6, 0, 0, 6}));
    EXPECT_THAT(cut_refusals(model, hollow, 4),
                ElementsAre(HasSubstr("chunk 1 of the pipeline has no layer"), HasSubstr("chunk 2")));
}

TEST(Stages, counts_that_do_not_fit_are_refused_with_counts_that_do) {
    EXPECT_THAT(failure_of(12, pipeline(2, 1, {4, 4, 4})), HasSubstr("use [6, 6]"));
    EXPECT_THAT(failure_of(12, pipeline(2, 1, {6, 7})), HasSubstr("13 blocks together, and the model has 12"));
    EXPECT_THAT(failure_of(12, pipeline(2, 1, {-1, 13})), HasSubstr("use [6, 6]"));
    EXPECT_THAT(failure_of(12, pipeline(16)),
                HasSubstr("16 chunks are more than the model's 12 blocks; use pp=1, 2, 3, "
                          "4, 6 or 12"));
    EXPECT_THAT(failure_of(0, pipeline(2)), HasSubstr("use pp=1"));
}

TEST(Stages, resnet_passes_one_tensor_from_block_to_block) {
    const model::Model model = model_named("resnet50");
    EXPECT_EQ(block_count(model), 16);
    for (const int pp : {2, 4, 8, 16})
        EXPECT_THAT(cut_refusals(model, chunk_of_layer(model, pipeline(pp)), pp), IsEmpty());
}

// A skip over two blocks: block b's output and block a's both cross the border behind b.
TEST(Stages, a_connection_around_a_border_is_refused_with_the_layers_named) {
    const model::Model model = model_of(R"(
input: [3, 8, 8]
blocks:
  plain: {layers: [{name: conv, op: convolution, out: 3, kernel: 1}]}
  sum: {layers: [{name: conv, op: convolution, out: 3, kernel: 1}]}
layers:
  - {name: a, block: plain}
  - {name: b, block: plain}
  - {name: c, block: plain}
  - {name: skip, op: add, in: [c, a]}
  - {op: flatten}
  - {op: softmax_loss}
)");
    EXPECT_THAT(cut_refusals(model, chunk_of_layer(model, pipeline(3)), 3),
                ElementsAre(AllOf(HasSubstr("between chunk 1 and 2"), HasSubstr("'a.conv', 'b.conv'"))));
}

TEST(Stages, an_input_that_a_later_chunk_reads_is_refused) {
    const model::Model model = model_of(R"(
input: [3, 8, 8]
blocks:
  plain: {layers: [{name: conv, op: convolution, out: 3, kernel: 1}]}
layers:
  - {name: a, block: plain}
  - {name: b, block: plain}
  - {name: skip, op: add, in: [b, input]}
  - {op: flatten}
  - {op: softmax_loss}
)");
    EXPECT_THAT(cut_refusals(model, chunk_of_layer(model, pipeline(2)), 2), ElementsAre(HasSubstr("input 'input'")));
}

}  // namespace
}  // namespace lockstep::plan
