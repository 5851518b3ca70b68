#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/document.hpp"
#include "refusal.hpp"

namespace lockstep::config {
namespace {

using namespace literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The errors of reading one mapping with `read`.
template <class Read>
std::vector<std::string> errors_of(std::string_view text, Read read) {
    Diagnostics diagnostics;
    Object object(parse_text(text, "f"), "experiment", diagnostics);
    read(object);
    return diagnostics.errors();
}

TEST(Object, reads_each_kind_of_value) {
    Diagnostics diagnostics;
    Object object(
        parse_text("{t: resnet50, i: -3, d: 2.5e3, f: true, b: 25 MiB, s: 3 us, w: 25 GB/s, r: 312 TFLOPS, p: 400 W, "
                   "l: [1, 2], one: 8, n: {x: 1}, c: bf16, ts: [a, b]}",
                   "f"),
        "experiment", diagnostics);
    EXPECT_EQ(object.text("t"), "resnet50");
    EXPECT_EQ(object.integer("i"), -3);
    EXPECT_EQ(object.number("d"), 2500.0);
    EXPECT_TRUE(object.flag_or("f", false));
    EXPECT_EQ(object.bytes("b"), 25_MiB);
    EXPECT_EQ(object.seconds("s"), 3_us);
    EXPECT_EQ(object.bandwidth("w"), 25_GBps);
    EXPECT_EQ(object.flop_rate("r"), 312_TFLOPS);
    EXPECT_EQ(object.watts_or("p", Watts{}), Watts{400});
    EXPECT_THAT(object.integers("l"), ElementsAre(1, 2));
    EXPECT_THAT(object.integers("one"), ElementsAre(8));
    EXPECT_EQ(object.node("n")->canonical(), R"({"x":1})");
    EXPECT_EQ(object.choice_or("c", {"fp32", "bf16"}, "fp32"), "bf16");
    EXPECT_THAT(object.texts("ts"), ElementsAre("a", "b"));
    object.finish();
    EXPECT_THAT(diagnostics.errors(), IsEmpty());
}

TEST(Object, absent_optional_values_take_their_fallback) {
    Diagnostics diagnostics;
    Object object(Node(), "experiment", diagnostics);
    EXPECT_EQ(object.text_or("t", "x"), "x");
    EXPECT_EQ(object.integer_or("i", 7), 7);
    EXPECT_EQ(object.number_or("d", 0.5), 0.5);
    EXPECT_TRUE(object.flag_or("f", true));
    EXPECT_EQ(object.bytes_or("b", 1_KiB), 1_KiB);
    EXPECT_FALSE(object.node("n").has_value());
    EXPECT_FALSE(object.has("h"));
    object.finish();
    EXPECT_THAT(diagnostics.errors(), IsEmpty());
}

TEST(Object, all_errors_of_a_mapping_come_at_once) {
    const auto errors = errors_of("modle: resnet50\nranks: 0\nbucket: 25\nseed: x\noverlap: yes\nprecision: bf61\n",
                                  [](Object& object) {
                                      object.text("model");
                                      object.integer("ranks", 1);
                                      object.bytes("bucket");
                                      object.integer_or("seed", 1);
                                      object.flag_or("overlap", true);
                                      object.choice_or("precision", {"fp32", "bf16"}, "fp32");
                                      object.finish();
                                  });
    EXPECT_THAT(errors, ElementsAre("f:1:1: experiment: key 'model' is missing",
                                    "f:2:8: ranks: wants a whole number of at least 1, got '0'",
                                    HasSubstr("f:3:9: bucket: wants a size such as '25 MiB'"),
                                    "f:4:7: seed: wants a whole number, got 'x'",
                                    "f:5:10: overlap: wants true or false, got 'yes'",
                                    "f:6:12: precision: wants one of fp32, bf16, got 'bf61' (did you mean 'bf16'?)",
                                    "f:1:1: experiment: unknown key 'modle' (did you mean 'model'?)"));
}

TEST(Object, an_unknown_key_like_no_known_one_lists_the_known_keys) {
    const auto errors = errors_of("zzz: 1\n", [](Object& object) {
        object.text_or("model", "");
        object.integer_or("ranks", 1);
        object.finish();
    });
    EXPECT_THAT(errors, ElementsAre("f:1:1: experiment: unknown key 'zzz'; known keys: model, ranks"));
}

TEST(Object, a_whole_number_takes_no_fraction_no_quotes_and_no_rest) {
    for (const char* text :
         {"n: 1.5", "n: '3'", "n: 3x", "n: 1e3", "n: 99999999999999999999", "n: [3]", "n: ~", "n: +-3", "n: 0x10"})
        EXPECT_EQ(errors_of(text, [](Object& object) { object.integer("n"); }).size(), 1u) << text;
    EXPECT_THAT(errors_of("n: '3'", [](Object& object) { object.integer("n"); }),
                ElementsAre(HasSubstr("in quotes; leave them out")));
    EXPECT_THAT(errors_of("n: +3", [](Object& object) { EXPECT_EQ(object.integer("n"), 3); }), IsEmpty());
}

TEST(Object, a_number_is_finite_and_within_its_limits) {
    for (const char* text : {"n: .inf", "n: nan", "n: inf", "n: 1e999", "n: 2", "n: -0.1", "n: 10%"})
        EXPECT_EQ(errors_of(text, [](Object& object) { object.number("n", 0, 1); }).size(), 1u) << text;
    EXPECT_THAT(errors_of("n: 2", [](Object& object) { EXPECT_EQ(object.number("n", 0, 1), 1); }),
                ElementsAre("f:1:4: n: wants a number from 0 to 1, got '2'"));
}

TEST(Object, a_quantity_without_its_unit_is_refused_but_zero) {
    EXPECT_THAT(errors_of("b: 0\ns: 0\nw: 0.0",
                          [](Object& object) {
                              EXPECT_EQ(object.bytes("b"), Bytes{});
                              EXPECT_EQ(object.seconds("s"), Seconds{});
                              EXPECT_EQ(object.bandwidth("w"), Bandwidth{});
                          }),
                IsEmpty());
    EXPECT_EQ(errors_of("b: 3 us", [](Object& object) { object.bytes("b"); }).size(), 1u);
    EXPECT_EQ(errors_of("b: [25 MiB]", [](Object& object) { object.bytes("b"); }).size(), 1u);
}

TEST(Object, a_list_of_integers_reports_each_wrong_item_at_its_place) {
    EXPECT_THAT(errors_of("r: [1, a, 3, b]", [](Object& object) { EXPECT_EQ(object.integers("r").size(), 4u); }),
                ElementsAre("f:1:8: r: wants a whole number, got 'a'", "f:1:14: r: wants a whole number, got 'b'"));
}

TEST(Object, a_value_that_is_no_mapping_is_one_error) {
    EXPECT_THAT(errors_of("[1, 2]",
                          [](Object& object) {
                              object.text("model");
                              object.finish();
                          }),
                ElementsAre("f:1:1: experiment: wants keys and values (key: value), got a list"));
}

TEST(Object, an_error_of_the_caller_stands_at_the_key) {
    EXPECT_THAT(errors_of("a: 1\ntp: 16\n",
                          [](Object& object) {
                              object.error("tp", "does not fit");
                              object.error("dp", "is wrong");
                          }),
                ElementsAre("f:2:5: tp: does not fit", "f:1:1: experiment: is wrong"));
}

TEST(Diagnostics, beyond_100_errors_only_their_count_is_shown) {
    Diagnostics diagnostics;
    EXPECT_NO_THROW(diagnostics.throw_if_any());
    for (int i = 0; i < 103; ++i) diagnostics.error({"f", i + 1, 1}, "bad");
    const std::string message = refusal([&] { diagnostics.throw_if_any(); });
    EXPECT_THAT(message, HasSubstr("f:100:1: bad\n... and 3 more errors"));
}

TEST(Nearest, finds_misspelt_swapped_and_shortened_names) {
    const std::vector<std::string> names{"resnet50", "bert-base", "dgx-a100-40gb", "dgx-h100"};
    EXPECT_EQ(nearest("resnet5", names), "resnet50");
    EXPECT_EQ(nearest("bert_base", names), "bert-base");
    EXPECT_EQ(nearest("ersnet50", names), "resnet50");
    EXPECT_EQ(nearest("DGX-H100", names), "dgx-h100");
    EXPECT_EQ(nearest("h100", names), "dgx-h100");
    EXPECT_EQ(nearest("vgg16", names), std::nullopt);
    EXPECT_EQ(nearest("", names), std::nullopt);
    EXPECT_EQ(nearest("x", {"y"}), std::nullopt);
    EXPECT_EQ(did_you_mean("zzzzzz", names), "");
}

}  // namespace
}  // namespace lockstep::config
