// Every mistake a model file can hold: its place, its message, and all of them at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string image_model(const std::string& layers) { return "input: [3, 8, 8]\nlayers:\n" + layers; }
std::string gpt_model(const std::string& sizes) { return "gpt: {" + sizes + "}\n"; }
const std::string loss = "  - {op: softmax_loss}\n";

TEST(BadModel, a_cycle_is_shown_layer_by_layer) {
    EXPECT_THAT(errors_of(image_model("  - {name: a, op: add, in: [input, c]}\n"
                                      "  - {name: b, op: relu}\n"
                                      "  - {name: c, op: relu}\n"
                                      "  - {op: flatten}\n" +
                                      loss)),
                ElementsAre(HasSubstr("layers form a cycle ('a' -> 'b' -> 'c' -> 'a')")));
}

TEST(BadModel, a_layer_that_feeds_itself_is_a_cycle) {
    EXPECT_THAT(errors_of(image_model("  - {name: a, op: relu, in: a}\n  - {op: flatten, in: input}\n" + loss)),
                ElementsAre(HasSubstr("cycle ('a' -> 'a')")));
}

TEST(BadModel, an_unknown_layer_is_reported_at_its_place_with_the_nearest_name) {
    EXPECT_THAT(errors_of(image_model("  - {name: conv1, op: relu}\n  - {op: flatten, in: conv2}\n" + loss)),
                ElementsAre(AllOf(StartsWith("test.yaml:4:23:"), HasSubstr("unknown layer 'conv2'"),
                                  HasSubstr("did you mean 'conv1'?"))));
}

TEST(BadModel, an_unknown_op_is_reported_with_the_nearest_name) {
    EXPECT_THAT(errors_of(image_model("  - {op: convolutoin, out: 4, kernel: 3}\n  - {op: flatten}\n" + loss)),
                ElementsAre(AllOf(StartsWith("test.yaml:3:10:"), HasSubstr("unknown op 'convolutoin'"),
                                  HasSubstr("did you mean 'convolution'?"))));
}

TEST(BadModel, an_unknown_key_is_reported_with_the_nearest_name) {
    EXPECT_THAT(
        errors_of(image_model("  - {op: convolution, out: 4, kernal: 3, kernel: 3}\n  - {op: flatten}\n" + loss)),
        ElementsAre(AllOf(HasSubstr("kernal"), HasSubstr("did you mean 'kernel'?"))));
}

TEST(BadModel, an_add_of_unequal_shapes_names_both_layers_and_shapes) {
    EXPECT_THAT(errors_of(image_model("  - {name: wide, op: convolution, out: 6, kernel: 1}\n"
                                      "  - {name: sum, op: add, in: [wide, input]}\n"
                                      "  - {op: flatten}\n" +
                                      loss)),
                ElementsAre(AllOf(StartsWith("test.yaml:4:5:"), HasSubstr("layer 'sum'"),
                                  HasSubstr("'wide' gives [6, 8, 8]"), HasSubstr("'input' gives [3, 8, 8]"))));
}

TEST(BadModel, a_layer_of_the_wrong_rank_names_what_feeds_it) {
    EXPECT_THAT(errors_of(image_model("  - {name: flat, op: flatten}\n"
                                      "  - {name: conv, op: convolution, out: 6, kernel: 1}\n"
                                      "  - {op: flatten}\n" +
                                      loss)),
                ElementsAre(AllOf(HasSubstr("layer 'conv'"), HasSubstr("'flat' gives [192]"))));
}

TEST(BadModel, a_kernel_larger_than_its_input_is_refused) {
    EXPECT_THAT(errors_of(image_model("  - {name: big, op: max_pool, kernel: 9}\n  - {op: flatten}\n" + loss)),
                ElementsAre(AllOf(HasSubstr("layer 'big'"), HasSubstr("kernel of 9"), HasSubstr("[3, 8, 8]"))));
}

TEST(BadModel, zero_and_negative_sizes_are_all_reported) {
    EXPECT_THAT(errors_of(image_model("  - {op: convolution, out: 0, kernel: -3, stride: 0, padding: -1, groups: 0}\n"
                                      "  - {op: flatten}\n" +
                                      loss)),
                ElementsAre(HasSubstr("out"), HasSubstr("kernel"), HasSubstr("stride"), HasSubstr("padding"),
                            HasSubstr("groups")));
    EXPECT_THAT(errors_of("input: [3, 0, -8]\nlayers: [{op: flatten}, {op: softmax_loss}]\n"),
                ::testing::Contains(HasSubstr("sizes must be from 1")));
}

TEST(BadModel, groups_must_divide_both_channel_counts) {
    EXPECT_THAT(
        errors_of(image_model("  - {op: convolution, out: 4, kernel: 1, groups: 2}\n  - {op: flatten}\n" + loss)),
        ElementsAre(HasSubstr("groups 2 must divide the 3 channels going in and the 4 coming out")));
}

TEST(BadModel, a_missing_loss_is_named) {
    EXPECT_THAT(errors_of(image_model("  - {op: flatten}\n")), ElementsAre(HasSubstr("has no loss")));
}

TEST(BadModel, a_second_loss_is_refused) {
    EXPECT_THAT(
        errors_of(image_model("  - {name: f, op: flatten}\n" + loss + "  - {name: l2, op: softmax_loss, in: f}\n")),
        ElementsAre(HasSubstr("'l2' is a second loss")));
}

TEST(BadModel, nothing_may_follow_the_loss) {
    EXPECT_THAT(errors_of(image_model("  - {op: flatten}\n" + loss + "  - {name: after, op: relu}\n")),
                ::testing::Contains(HasSubstr("is a loss, which feeds no other layer")));
}

TEST(BadModel, a_dead_end_is_named) {
    EXPECT_THAT(errors_of(image_model("  - {name: lost, op: relu}\n  - {op: flatten, in: input}\n" + loss)),
                ElementsAre(AllOf(StartsWith("test.yaml:3:5:"), HasSubstr("nothing uses layer 'lost'"))));
}

TEST(BadModel, an_unused_input_is_named) {
    EXPECT_THAT(errors_of("inputs: {left: [3, 8, 8], right: [3, 8, 8]}\n"
                          "layers: [{op: flatten, in: left}, {op: softmax_loss}]\n"),
                ElementsAre(HasSubstr("nothing uses the model's input 'right'")));
}

TEST(BadModel, a_name_used_twice_is_refused) {
    EXPECT_THAT(errors_of(image_model("  - {name: a, op: relu}\n  - {name: a, op: relu}\n  - {op: flatten}\n" + loss)),
                ::testing::Contains(HasSubstr("'a' is used twice")));
}

TEST(BadModel, tokens_can_only_be_embedded_and_within_the_vocabulary) {
    EXPECT_THAT(errors_of("input: {tokens: 8, vocab: 100}\nlayers: [{op: relu}, {op: softmax_loss}]\n"),
                ElementsAre(HasSubstr("holds token ids")));
    EXPECT_THAT(errors_of("input: {tokens: 8, vocab: 100}\n"
                          "layers: [{op: embedding, hidden: 4, vocab: 50}, {op: softmax_loss}]\n"),
                ElementsAre(HasSubstr("ids of 'input' reach 99")));
}

TEST(BadModel, a_tied_weight_must_exist_and_fit) {
    const std::string head =
        "input: {tokens: 8, vocab: 100}\nlayers:\n  - {name: e, op: embedding, hidden: 4}\n"
        "  - {name: r, op: relu}\n";
    EXPECT_THAT(errors_of(head + "  - {name: o, op: linear, out: 100, bias: false, tied_to: x}\n" + loss),
                ElementsAre(HasSubstr("unknown layer 'x'")));
    EXPECT_THAT(errors_of(head + "  - {name: o, op: linear, out: 100, bias: false, tied_to: r}\n" + loss),
                ElementsAre(HasSubstr("'r' has no weight")));
    EXPECT_THAT(errors_of(head + "  - {name: o, op: linear, out: 99, bias: false, tied_to: e}\n" + loss),
                ElementsAre(AllOf(HasSubstr("[99, 4]"), HasSubstr("'e.weight' of [100, 4]"))));
}

TEST(BadModel, heads_must_divide_hidden_and_kv_heads_heads) {
    EXPECT_THAT(errors_of(gpt_model("layers: 2, hidden: 100, heads: 12, vocab: 10, seq_len: 8")),
                ElementsAre(HasSubstr("heads 12 doesn't divide hidden 100")));
    EXPECT_THAT(errors_of(gpt_model("layers: 2, hidden: 96, heads: 12, kv_heads: 5, vocab: 10, seq_len: 8")),
                ElementsAre(HasSubstr("kv_heads 5 doesn't divide heads 12")));
    EXPECT_THAT(errors_of("bert: {layers: 2, hidden: 100, heads: 12, vocab: 10, seq_len: 8}\n"),
                ElementsAre(HasSubstr("heads 12 doesn't divide hidden 100")));
}

TEST(BadModel, transformer_sizes_are_all_checked_at_once) {
    EXPECT_THAT(errors_of(gpt_model("layers: 0, hidden: -4, heads: 2, vocab: 1, seq_len: 0, dropout: 1.5, gatd: true")),
                ElementsAre(HasSubstr("layers"), HasSubstr("hidden"), HasSubstr("vocab"), HasSubstr("seq_len"),
                            HasSubstr("dropout"), HasSubstr("gatd")));
}

TEST(BadModel, a_sequence_longer_than_its_positions_is_refused) {
    EXPECT_THAT(errors_of("bert: {layers: 1, hidden: 8, heads: 2, vocab: 10, seq_len: 1024, positions: 512}\n"),
                ElementsAre(HasSubstr("512 positions are fewer than seq_len 1024")));
}

TEST(BadModel, too_many_layers_or_parameters_are_refused_without_overflow) {
    EXPECT_THAT(errors_of(image_model("  - {name: r, op: relu, repeat: 1000000}\n  - {op: flatten}\n" + loss)),
                ::testing::Contains(HasSubstr("more than 1000000 layers")));
    EXPECT_THAT(errors_of(gpt_model("layers: 1000000, hidden: 8, heads: 2, vocab: 10, seq_len: 8")),
                ElementsAre(HasSubstr("more than 1000000 layers")));
    EXPECT_THAT(errors_of(gpt_model("layers: 2, hidden: 1000000000, heads: 1, vocab: 1000000000, seq_len: 8")),
                ElementsAre(HasSubstr("too big")));
    EXPECT_THAT(errors_of(gpt_model("layers: 100, hidden: 10000000, heads: 1, vocab: 10, seq_len: 1")),
                ElementsAre(HasSubstr("1e15")));
    EXPECT_THAT(errors_of("input: [1000000000, 1000000000, 1000000000]\n"
                          "layers: [{op: flatten}, {op: softmax_loss}]\n"),
                ElementsAre(HasSubstr("too big")));
}

TEST(BadModel, a_model_is_described_in_exactly_one_way) {
    EXPECT_THAT(errors_of("name: x\n"), ElementsAre(HasSubstr("one of: input and layers, gpt: {...}, or bert: {...}")));
    EXPECT_THAT(errors_of("gpt: {layers: 1}\nbert: {layers: 1}\n"), ::testing::Contains(HasSubstr("one of")));
}

TEST(BadModel, all_errors_of_a_file_come_at_once) {
    std::vector<std::string> errors =
        errors_of(image_model("  - {name: a, op: relux}\n"
                              "  - {name: b, op: convolution, in: input, out: 0, kernel: 1}\n"
                              "  - {name: c, op: add, in: [a, b]}\n"
                              "  - {op: flatten, in: cc}\n" +
                              loss));
    EXPECT_THAT(errors,
                ElementsAre(HasSubstr("unknown layer 'cc'"), HasSubstr("unknown op 'relux'"), HasSubstr("out")));
}

TEST(BadModel, a_file_with_errors_throws_them_with_file_line_and_column) {
    const auto folder = std::filesystem::temp_directory_path() / "lockstep_bad_model_test";
    std::filesystem::create_directories(folder);
    const auto path = folder / "broken.yaml";
    std::ofstream(path) << image_model("  - {op: relux}\n  - {op: flatten}\n" + loss);
    try {
        load_model(shipped_models(), path.string());
        ADD_FAILURE() << "no error";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("broken.yaml:3:10: "));
        EXPECT_EQ(error.code(), ExitCode::bad_input);
    }
    std::filesystem::remove_all(folder);
}

TEST(BadModel, an_unknown_model_is_reported_with_the_nearest_name) {
    EXPECT_THROW(
        {
            try {
                load_shipped("resnet5");
            } catch (const InputError& error) {
                EXPECT_THAT(error.what(), HasSubstr("resnet50"));
                throw;
            }
        },
        InputError);
}

}  // namespace
}  // namespace lockstep::model
