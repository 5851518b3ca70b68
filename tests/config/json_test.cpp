#include "config/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/random.hpp"
#include "config/document.hpp"

namespace lockstep::config {
namespace {

TEST(Json, keeps_keys_in_the_order_they_were_set) {
    Json json;
    json.set("b", 1);
    json.set("a", Json::array()).push("x");
    json.set("b", 2.5);
    EXPECT_EQ(json.dump(-1), R"({"b":2.5,"a":["x"]})");
    EXPECT_EQ(json.dump(), "{\n  \"b\": 2.5,\n  \"a\": [\n    \"x\"\n  ]\n}");
}

TEST(Json, integers_are_exact_to_64_bits) {
    EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).dump(), "-9223372036854775808");
    EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).dump(), "18446744073709551615");
    EXPECT_EQ(Json(std::size_t{7}).dump(), "7");
    EXPECT_EQ(Json(7LL).dump(), "7");
}

TEST(Json, each_kind_is_written_as_its_kind) {
    EXPECT_EQ(Json().dump(), "null");
    EXPECT_EQ(Json(true).dump(), "true");
    EXPECT_EQ(Json("text").dump(), "\"text\"");
    EXPECT_EQ(Json::object().dump(-1), "{}");
    EXPECT_EQ(Json::array().dump(-1), "[]");
}

TEST(Json, numbers_that_are_not_finite_become_null) {
    EXPECT_EQ(Json(std::nan("")).dump(), "null");
    EXPECT_EQ(Json(HUGE_VAL).dump(), "null");
}

TEST(Json, invalid_utf8_is_replaced_and_quotes_are_escaped) {
    EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\"");
    EXPECT_EQ(Json("a\"\\\n").dump(), R"("a\"\\\n")");
}

TEST(Json, doubles_survive_writing_and_reading) {
    constexpr std::uint64_t seed = 11;
    RecordProperty("seed", static_cast<int>(seed));
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const double value = std::ldexp(static_cast<double>(random_bits(seed, 0, i)), static_cast<int>(i % 400) - 200);
        ASSERT_EQ(std::stod(Json(value).dump()), value) << "seed " << seed << " index " << i;
    }
    EXPECT_EQ(Json(0.1).dump(), "0.1");
}

TEST(Json, setting_a_key_of_a_list_is_a_bug) {
    Json list = Json::array();
    EXPECT_THROW(list.set("a", 1), LogicError);
    EXPECT_THROW(Json(1).push(2), LogicError);
}

TEST(Json, what_is_written_is_read_by_the_document_parser) {
    Json json;
    json.set("text", "a: b # \"c\"\t");
    json.set("list", Json::Array{1, 2.5, nullptr, false});
    EXPECT_EQ(parse_text(json.dump(), "f").json().dump(), json.dump());
}

}  // namespace
}  // namespace lockstep::config
