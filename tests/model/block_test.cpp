// Blocks, parameters and repetition in model files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const Model& model) {
    std::vector<std::string> names;
    for (const auto& layer : model.layers) names.push_back(layer.name);
    return names;
}
const Layer& named(const Model& model, std::string_view name) {
    return *std::find_if(model.layers.begin(), model.layers.end(), [&](const Layer& l) { return l.name == name; });
}
std::string with_block(const std::string& layers) {
    return "input: [3, 8, 8]\n"
           "blocks:\n"
           "  residual:\n"
           "    parameters: {kernel: 3, padding: 1, out: }\n"
           "    layers:\n"
           "      - {name: conv, op: convolution, out: $out, kernel: $kernel, padding: $padding}\n"
           "      - {name: add, op: add, in: [conv, input]}\n"
           "layers:\n" +
           layers + "  - {name: flat, op: flatten}\n  - {name: loss, op: softmax_loss}\n";
}

TEST(Block, repeated_blocks_are_chained_and_numbered_in_groups) {
    const Model model = model_of(with_block("  - {name: r, block: residual, repeat: 2, first: 1, with: {out: 3}}\n"));
    EXPECT_THAT(names_of(model), ElementsAre("r.1.conv", "r.1.add", "r.2.conv", "r.2.add", "flat", "loss"));
    EXPECT_EQ(named(model, "r.1.add").repeat_group, 0);
    EXPECT_EQ(named(model, "r.2.add").repeat_group, 1);
    EXPECT_EQ(named(model, "flat").repeat_group, -1);
    // The second use reads the first one's output, twice.
    EXPECT_EQ(model.layer(named(model, "r.2.conv").inputs[0]).name, "r.1.add");
    EXPECT_EQ(model.layer(named(model, "r.2.add").inputs[1]).name, "r.1.add");
    EXPECT_FALSE(named(model, "r.1.add").inputs[1].is_valid());  // the model's input
}

TEST(Block, a_layer_can_name_a_block_or_a_layer_in_it) {
    const Model model =
        model_of(with_block("  - {name: r, block: residual, with: {out: 3}}\n"
                            "  - {name: s, op: add, in: [r, r.conv]}\n"));
    EXPECT_EQ(model.layer(named(model, "s").inputs[0]).name, "r.add");
    EXPECT_EQ(model.layer(named(model, "s").inputs[1]).name, "r.conv");
}

TEST(Block, defaults_hold_until_a_use_changes_them) {
    const Model model =
        model_of(with_block("  - {name: a, block: residual, with: {out: 3}}\n"
                            "  - {name: b, block: residual, with: {out: 3, kernel: 1, padding: 0}}\n"));
    EXPECT_EQ(std::get<Convolution>(named(model, "a.conv").kind).kernel, 3);
    EXPECT_EQ(std::get<Convolution>(named(model, "b.conv").kind).kernel, 1);
}

TEST(Block, layers_written_out_of_order_are_put_in_order) {
    const Model model = model_of(
        "input: [3, 8, 8]\n"
        "layers:\n"
        "  - {name: flat, op: flatten, in: second}\n"
        "  - {name: second, op: relu, in: first}\n"
        "  - {name: first, op: gelu, in: input}\n"
        "  - {name: loss, op: softmax_loss, in: flat}\n");
    EXPECT_THAT(names_of(model), ElementsAre("first", "second", "flat", "loss"));
}

TEST(Block, a_missing_value_an_unknown_parameter_and_an_unknown_block_are_reported) {
    EXPECT_THAT(errors_of(with_block("  - {block: residual}\n")), ElementsAre(HasSubstr("wants a value for 'out'")));
    EXPECT_THAT(errors_of(with_block("  - {block: residual, with: {out: 3, kernl: 1}}\n")),
                ElementsAre(HasSubstr("no parameter 'kernl' (did you mean 'kernel'?)")));
    EXPECT_THAT(errors_of(with_block("  - {block: residul, with: {out: 3}}\n")),
                ElementsAre(HasSubstr("unknown block 'residul' (did you mean 'residual'?)")));
}

TEST(Block, an_error_inside_a_block_used_often_is_reported_once) {
    EXPECT_THAT(errors_of(with_block("  - {name: r, block: residual, repeat: 5, with: {out: 4}}\n")),
                ElementsAre(AllOf(HasSubstr("layer 'r.0.add'"), HasSubstr("[4, 8, 8]"), HasSubstr("[3, 8, 8]"))));
}

TEST(Block, a_block_within_itself_is_refused) {
    EXPECT_THAT(errors_of("input: [3, 8, 8]\n"
                          "blocks: {a: {layers: [{block: b}]}, b: {layers: [{block: a}]}}\n"
                          "layers: [{block: a}, {op: flatten}, {op: softmax_loss}]\n"),
                ElementsAre(HasSubstr("block 'a' contains itself (a -> b -> a)")));
}

TEST(Block, blocks_that_multiply_beyond_a_million_layers_stop_there) {
    std::string text = "input: [3, 8, 8]\nblocks:\n  b0: {layers: [{op: relu, repeat: 1000}]}\n";
    for (int i = 1; i < 20; ++i)
        text += "  b" + std::to_string(i) + ": {layers: [{block: b" + std::to_string(i - 1) + ", repeat: 1000}]}\n";
    text += "layers: [{block: b19}, {op: flatten}, {op: softmax_loss}]\n";
    EXPECT_THAT(errors_of(text), ::testing::Contains(HasSubstr("more than 1000000 layers")));
}

}  // namespace
}  // namespace lockstep::model
