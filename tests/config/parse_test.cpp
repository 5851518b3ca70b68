#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/document.hpp"
#include "refusal.hpp"

namespace lockstep::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string repeat(std::string_view text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

std::string parse_refusal(std::string_view text) {
    return refusal([&] { parse_text(text, "f.yaml"); });
}

TEST(Parse, every_value_knows_its_line_and_column) {
    const Node root = parse_text("# comment\nmodel: resnet50\nplan:\n  bucket: 25 MiB\nranks: [1, 2]\n", "f.yaml");
    EXPECT_EQ(to_string(root.find("model")->where()), "f.yaml:2:8");
    EXPECT_EQ(to_string(root.find("plan")->find("bucket")->where()), "f.yaml:4:11");
    EXPECT_EQ(to_string(root.find("ranks")->items()[1].where()), "f.yaml:5:12");
    EXPECT_EQ(to_string(root.entries()[2].where), "f.yaml:5:1");
}

TEST(Parse, a_missing_value_is_null_at_its_key) {
    const Node root = parse_text("a:\nb: ~\nc: \"\"\n", "f.yaml");
    EXPECT_TRUE(root.find("a")->is_null());
    EXPECT_EQ(to_string(root.find("a")->where()), "f.yaml:1:1");
    EXPECT_TRUE(root.find("b")->is_null());
    EXPECT_TRUE(root.find("c")->is_scalar());
    EXPECT_TRUE(root.find("c")->is_quoted());
}

TEST(Parse, json_with_tabs_and_without_spaces_is_read_like_yaml) {
    const Node json = parse_text("{\n\t\"a\":1,\n\t\"b\":[true,null,\"x\"]\n}\n", "f.json");
    const Node yaml = parse_text("b: [true, null, x]\na: 1\n", "f.yaml");
    EXPECT_EQ(json.canonical(), yaml.canonical());
    EXPECT_EQ(to_string(json.find("b")->where()), "f.json:3:6");
}

TEST(Parse, all_duplicate_keys_are_reported_with_the_line_of_the_first) {
    const std::string message = parse_refusal("a: 1\nb: 2\na: 3\nc: {x: 1, x: 2}\n");
    EXPECT_EQ(message,
              "f.yaml:3:1: duplicate key 'a' (first on line 1); keep one\n"
              "f.yaml:4:11: duplicate key 'x' (first on line 4); keep one");
}

TEST(Parse, equal_keys_of_different_mappings_are_no_duplicates) {
    EXPECT_EQ(parse_text("[{x: 1}, {x: 2}]", "f").canonical(), R"([{"x":1},{"x":2}])");
}

TEST(Parse, anchors_aliases_and_tags_are_refused_where_they_stand) {
    EXPECT_THAT(parse_refusal("a: &x 1\nb: *x\n"), StartsWith("f.yaml:1:4: anchors"));
    EXPECT_THAT(parse_refusal("a: !!str 1\n"), StartsWith("f.yaml:1:4: tags"));
    EXPECT_THAT(parse_refusal("a: *x\n"), StartsWith("f.yaml:1:4:"));
}

TEST(Parse, a_document_without_a_value_is_refused) {
    for (const char* text : {"", "# only a comment\n", "---\n", "null\n"})
        EXPECT_EQ(parse_refusal(text), "f.yaml: holds no value (an empty document)") << text;
}

TEST(Parse, a_second_document_is_refused) {
    EXPECT_THAT(parse_refusal("a: 1\n---\nb: 2\n"), HasSubstr("one document"));
    EXPECT_THAT(parse_refusal("{\"a\": 1} {\"b\": 2}"), HasSubstr("f.yaml:1:10: more text"));
    EXPECT_EQ(parse_text("---\na: 1\n...\n", "f").canonical(), R"({"a":1})");
}

TEST(Parse, malformed_text_is_refused_with_its_place) {
    EXPECT_THAT(parse_refusal("a: 1\n b: 2\n"), StartsWith("f.yaml:2:3: "));
    EXPECT_THAT(parse_refusal("a: [1}\n"), StartsWith("f.yaml:1:6: "));
    EXPECT_THAT(parse_refusal("{\"a\": \"x"), StartsWith("f.yaml:1:"));
    EXPECT_THAT(parse_refusal("[1, 2"), HasSubstr("never closed"));
    EXPECT_THAT(parse_refusal("~: 1\n"), HasSubstr("f.yaml:1:1: a key has no text"));
}

TEST(Parse, bytes_that_are_no_utf8_text_are_refused_with_their_place) {
    using namespace std::string_view_literals;
    EXPECT_THAT(parse_refusal("a: 1\nb: \xff\n"), StartsWith("f.yaml:2:4: byte 0xff is not UTF-8"));
    EXPECT_THAT(parse_refusal("a: \0\n"sv), StartsWith("f.yaml:1:4: control character 0x00"));
    EXPECT_THAT(parse_refusal("\x89HDF\r\n\x1a\n"), StartsWith("f.yaml:1:1: byte 0x89"));
    EXPECT_THAT(parse_refusal("a: \xc0\xaf\n"), HasSubstr("not UTF-8"));          // overlong '/'
    EXPECT_THAT(parse_refusal("a: \xed\xa0\x80\n"), HasSubstr("not UTF-8"));      // a surrogate, U+D800
    EXPECT_THAT(parse_refusal("a: \xf4\x90\x80\x80\n"), HasSubstr("not UTF-8"));  // U+110000
    EXPECT_THAT(parse_refusal("a: \xe2\x82"), HasSubstr("not UTF-8"));            // cut off
    EXPECT_EQ(parse_text("\xef\xbb\xbfpreis: 5 \xe2\x82\xac\n", "f").find("preis")->text(), "5 \xe2\x82\xac");
}

TEST(Parse, depth_64_is_read_and_depth_65_refused) {
    EXPECT_NO_THROW(parse_text(repeat("[", 64) + repeat("]", 64), "f"));
    EXPECT_THAT(parse_refusal(repeat("[", 65) + repeat("]", 65)), StartsWith("f.yaml:1:65: nested deeper than 64"));
    EXPECT_THAT(parse_refusal(repeat("- ", 100'000)), HasSubstr("nested deeper than 64"));
}

TEST(Parse, more_than_a_million_values_are_refused) {
    EXPECT_THAT(parse_refusal("[" + repeat("1,", 1'000'000) + "]"), HasSubstr("more than 1000000 values"));
}

TEST(Parse, more_than_16_mebibytes_are_refused) {
    EXPECT_THAT(parse_refusal(std::string(max_document_bytes + 1, '#')), HasSubstr("larger than 16 MiB"));
}

TEST(Parse, a_file_that_cannot_be_read_is_named) {
    EXPECT_THAT(refusal([] { parse_file("/nowhere/x.yaml"); }),
                StartsWith("/nowhere/x.yaml: can't be read (No such file"));
    EXPECT_THAT(refusal([] { parse_file("/tmp"); }), StartsWith("/tmp: is a folder"));
}

TEST(Parse, a_file_is_read_with_its_path_as_name) {
    const auto path = std::filesystem::path(testing::TempDir()) / "lockstep_parse_test.yaml";
    std::ofstream(path) << "a: {b: 7}\n";
    EXPECT_EQ(to_string(parse_file(path).find("a")->find("b")->where()), path.string() + ":1:8");
    std::filesystem::remove(path);
}

TEST(Canonical, layout_comments_order_and_quotes_of_words_do_not_count) {
    EXPECT_EQ(parse_text("b: 1\na:\n  - x  # why\n  - 2.5\n", "f").canonical(),
              parse_text("{a: ['x', 2.50], b: 1}", "g").canonical());
    EXPECT_NE(parse_text("a: [1, 2]", "f").canonical(), parse_text("a: [2, 1]", "f").canonical());
    EXPECT_NE(parse_text("a: 1", "f").canonical(), parse_text("a: '1'", "f").canonical());
}

TEST(Canonical, reading_it_again_gives_the_same_bytes) {
    const std::string once =
        parse_text("{s: \"a\\\"b\\\\\\n\", n: ~, t: true, i: -9223372036854775808, d: 1e-7, big: 1e999, z: 12:30}", "f")
            .canonical();
    EXPECT_EQ(parse_text(once, "g").canonical(), once);
    EXPECT_THAT(once, HasSubstr("\"i\":-9223372036854775808"));
    EXPECT_THAT(once, HasSubstr("\"big\":\"1e999\""));
}

TEST(With, sets_a_value_deep_inside_and_leaves_the_original_alone) {
    const Node root = parse_text("plan: {bucket: 25 MiB}\nlist: [a, b]\n", "f");
    const Node value = Node::make_scalar("7", {"--set", 0, 0});
    EXPECT_EQ(root.with("plan.bucket", value).canonical(), R"({"list":["a","b"],"plan":{"bucket":7}})");
    EXPECT_EQ(root.with("plan.zero.stage", value).find("plan")->find("zero")->find("stage")->text(), "7");
    EXPECT_EQ(root.with("list.1", value).canonical(), R"({"list":["a",7],"plan":{"bucket":"25 MiB"}})");
    EXPECT_EQ(to_string(root.with("seed", value).find("seed")->where()), "--set");
    EXPECT_EQ(root.find("plan")->find("bucket")->text(), "25 MiB");
}

TEST(With, a_path_through_a_value_or_past_a_list_is_refused) {
    const Node root = parse_text("a: 1\nl: [1]\n", "f");
    EXPECT_THAT(refusal([&] { root.with("a.b", Node()); }), HasSubstr("is a single value"));
    EXPECT_THAT(refusal([&] { root.with("l.1", Node()); }), HasSubstr("no place in a list of 1"));
    EXPECT_THAT(refusal([&] { root.with("a..b", Node()); }), HasSubstr("empty part"));
    EXPECT_THAT(refusal([&] { root.with("", Node()); }), HasSubstr("empty part"));
}

}  // namespace
}  // namespace lockstep::config
