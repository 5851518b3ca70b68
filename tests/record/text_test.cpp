// Graphs and descriptions as text: exact there and back, and nothing believed that makes no sense.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "record/field_text.hpp"
#include "record/graph_text.hpp"
#include "record/run_fields.hpp"
#include "record/sample_run.hpp"

namespace lockstep::record::test {
namespace {

void replace_first(std::string& text, const std::string& what, const std::string& with) {
    const auto at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), with);
}

TEST(GraphText, every_op_kind_comes_back_as_it_was) {
    const auto graph = every_op_kind();
    const std::string text = graph_to_text(graph);
    const auto back = graph_from_text(text, "x");
    EXPECT_EQ(graph_to_text(back), text);
    ASSERT_EQ(back.op_count(), static_cast<std::int32_t>(std::variant_size_v<step::Compute>) + 5);
    for (std::int32_t i = 0; i < graph.op_count(); ++i) {
        EXPECT_EQ(back.op(i).kind.index(), graph.op(i).kind.index());
        EXPECT_EQ(step::kind_name(back.op(i)), step::kind_name(graph.op(i)));
    }
    const auto& attention = std::get<step::Attention>(std::get<step::Compute>(back.op(2).kind));
    EXPECT_EQ(attention.dropout_stream, 0xfedcba9876543210ULL);
    EXPECT_EQ(attention.dropout, 0.1);
    const auto& fill = std::get<step::Fill>(std::get<step::Compute>(back.op(15).kind));
    EXPECT_EQ(fill.value, -std::numeric_limits<double>::infinity());
    const auto& rotary = std::get<step::Elementwise>(std::get<step::Compute>(back.op(4).kind));
    EXPECT_EQ(rotary.kind, step::Elementwise::Kind::rotary);
    EXPECT_EQ(rotary.rotary.theta, 5e5);
    const auto& group = std::get<step::P2PGroup>(back.op(24).kind);
    EXPECT_EQ(group.sends.at(1).peer.offset, -1);
    EXPECT_TRUE(group.sends.at(0).peer.wraps);
    EXPECT_EQ(back.tensors[0].name, graph.tensors[0].name);
    EXPECT_EQ(back.tensors[0].initial.stream, 0x8000000000000001ULL);
    EXPECT_EQ(back.tensors[1].view->first_element, 5);
    EXPECT_FALSE(back.tensors[2].view);
    EXPECT_EQ(back.seed, graph.seed);
    EXPECT_EQ(back.classes[0].program.issues[0].chunk, 3);
}

TEST(GraphText, descriptions_of_before_a_field_was_added_are_read_without_it) {
    std::string rank = to_text(full_rank(2));
    replace_first(rank, R"("is_sampled":true,)", "");
    rank.erase(rank.find(R"(,"facts")"), rank.rfind('}') - rank.find(R"(,"facts")"));
    const auto old = from_text<RankDescription>(rank, "x");
    EXPECT_FALSE(old.is_sampled);
    EXPECT_TRUE(old.facts.empty());
    EXPECT_EQ(old.threads, 3);
    std::string run = to_text(full_description(3));
    replace_first(run, R"("span_cost_s")", R"("unknown_to_this_version")");
    EXPECT_FALSE(from_text<RunDescription>(run, "x").span_cost);
}

TEST(GraphText, a_description_with_nan_infinities_and_a_64_bit_seed_comes_back_as_it_was) {
    const auto run = full_description(3);
    const auto back = from_text<RunDescription>(to_text(run), "x");
    EXPECT_EQ(to_text(back), to_text(run));
    EXPECT_EQ(back.seed, 0xffffffffffffffffULL);
    EXPECT_TRUE(std::isnan(back.memory.total.value));
    EXPECT_EQ(back.model_flops.value, std::numeric_limits<double>::infinity());
    EXPECT_EQ(back.memory_capacity.value, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(back.interval80_low->value, 5e-324);
    EXPECT_EQ(back.interval80_high->value, 1.7976931348623157e308);
    EXPECT_EQ(back.experiment, run.experiment);
    EXPECT_EQ(back.span_cost->value, 1e-3 / 3);
    EXPECT_EQ(back.texts, run.texts);
    EXPECT_EQ(back.provenance, run.provenance);
    EXPECT_EQ(back.warnings, run.warnings);
    RunDescription without = run;
    without.peak.reset();
    without.interval80_low.reset();
    EXPECT_FALSE(from_text<RunDescription>(to_text(without), "x").peak);
}

TEST(GraphText, control_characters_and_c1_characters_survive) {
    RunDescription run;
    for (char c = 1; c < 32; ++c) run.label += c;
    run.label += "\x7f\u0080\u0085\u00a0\u2028\ufeff\U0010ffff";
    EXPECT_EQ(from_text<RunDescription>(to_text(run), "x").label, run.label);
}

/// One change of a good graph text, and what the refusal must name.
struct Mischief {
    const char* name;
    std::string from, to, names;
};

class BadGraphText : public testing::TestWithParam<Mischief> {};

TEST_P(BadGraphText, is_refused_with_the_file_named) {
    std::string text = graph_to_text(every_op_kind());
    replace_first(text, GetParam().from, GetParam().to);
    const std::string refusal = input_error([&] { graph_from_text(text, "stranger.h5"); });
    EXPECT_NE(refusal.find("stranger.h5"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(GetParam().names), std::string::npos) << refusal;
}

INSTANTIATE_TEST_SUITE_P(
    OneChange, BadGraphText,
    testing::Values(
        Mischief{"missing_field", "\"micro_batches\":2,", "", "micro_batches"},
        Mischief{"text_for_number", "\"micro_batches\":2", "\"micro_batches\":\"two\"", "two"},
        Mischief{"number_too_large", "\"micro_batches\":2", "\"micro_batches\":99999999999", "99999999999"},
        Mischief{"list_for_number", "\"micro_batches\":2", "\"micro_batches\":[2]", "no number"},
        Mischief{"number_for_list", "\"reduced_gradients\":[0,1]", "\"reduced_gradients\":0", "no list"},
        Mischief{"no_truth", "\"is_blocking_launch\":true", "\"is_blocking_launch\":1", "true nor false"},
        Mischief{"unknown_op", "\"op\":\"gemm\"", "\"op\":\"gemmm\"", "unknown kind"},
        Mischief{"unknown_choice", "\"precision\":2", "\"precision\":5", "no known choice"},
        Mischief{"zero_micro_batches", "\"micro_batches\":2", "\"micro_batches\":0", "micro-batches"},
        Mischief{"mesh_overflow", "\"dp\":2", "\"dp\":2147483647", "mesh"},
        Mischief{"mesh_zero", "\"tp\":1", "\"tp\":0", "mesh"},
        Mischief{"no_node", "\"ranks_per_node\":1", "\"ranks_per_node\":0", "placement"},
        Mischief{"shape_overflow", "\"shape\":[4,6,1]", "\"shape\":[4294967296,4294967296,4294967296]", "shape"},
        Mischief{"negative_extent", "\"shape\":[4,6,1]", "\"shape\":[4,-6,1]", "shape"},
        Mischief{"no_slots", "\"slots\":3", "\"slots\":0", "slots"},
        Mischief{"view_outside", "\"first_element\":5", "\"first_element\":9223372036854775807", "view"},
        Mischief{"view_of_nothing", "\"of\":0", "\"of\":17", "17"},
        Mischief{"tensor_outside", "\"in\":[0,1]", "\"in\":[0,3]", "op 0"},
        Mischief{"stream_outside", "\"stream\":0,\"layer\":0", "\"stream\":2,\"layer\":0", "op 0"},
        Mischief{"communicator_outside", "\"op\":\"collective\",\"collective\":4,\"communicator\":1",
                 "\"op\":\"collective\",\"collective\":4,\"communicator\":-1", "op 23"},
        Mischief{"message_of_nothing", "\"tensor\":1,\"tag\":7", "\"tensor\":-1,\"tag\":7", "op 24"},
        Mischief{"stride_zero", "\"kernel\":3,\"stride\":2", "\"kernel\":3,\"stride\":0", "stride"},
        Mischief{"ops_numbered_wrongly", "\"first_op\":11", "\"first_op\":2147483647", "update"},
        Mischief{"block_outside", "\"block\":1", "\"block\":2", "block"},
        Mischief{"micro_batch_outside", "\"block\":1,\"micro_batch\":1", "\"block\":1,\"micro_batch\":2",
                 "micro-batch"},
        Mischief{"class_outside", "\"class_of_stage\":[0]", "\"class_of_stage\":[1]", "class"},
        Mischief{"stage_without_class", "\"class_of_stage\":[0]", "\"class_of_stage\":[]", "stages"},
        Mischief{"loss_outside", "\"loss\":2", "\"loss\":3", "loss"},
        Mischief{"gradient_outside", "\"reduced_gradients\":[0,1]", "\"reduced_gradients\":[0,-1]", "gradient"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(GraphText, every_prefix_of_a_graph_is_refused) {
    const std::string text = graph_to_text(every_op_kind());
    for (std::size_t length = 0; length < text.size(); length += 97)
        EXPECT_NE(input_error([&] { graph_from_text(text.substr(0, length), "x"); }), "") << length;
}

/// A graph of so many gemms in one block.
step::StepGraph large_graph(int ops) {
    auto graph = every_op_kind();
    graph.blocks.resize(1);
    graph.blocks[0].ops.assign(static_cast<std::size_t>(ops), graph.blocks[0].ops[0]);
    graph.classes[0].program.issues.resize(2);
    return graph;
}

TEST(GraphText, a_graph_beyond_what_descriptions_may_hold_is_read) {
    // 45 values an op and its key each: 30,000 ops are more than the million values of a description.
    const auto graph = large_graph(30'000);
    const std::string text = graph_to_text(graph);
    EXPECT_NE(input_error([&] { config::parse_text(text, "x"); }), "");
    EXPECT_EQ(graph_from_text(text, "x").op_count(), 30'000);
}

TEST(GraphText, a_text_that_could_not_be_read_back_is_not_recorded) {
    EXPECT_EQ(input_error([] { require_readable("[1,2]", "it"); }), "");
    std::string many = "[";
    for (std::size_t i = 0; i < recorded_limits.nodes; ++i) many += "1,";
    const std::string refusal = input_error([&] { require_readable(many, "the step graph"); });
    EXPECT_NE(refusal.find("the step graph is too large to record"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace lockstep::record::test
