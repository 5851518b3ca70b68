// Models as text and JSON.
#include "report/model_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"

namespace lockstep::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

model::Model load(std::string_view name) {
    return model::load_model(
        config::DataPath(std::vector<std::filesystem::path>{std::filesystem::path(LOCKSTEP_SOURCE_DIR)}), name);
}
std::size_t widest(const std::string& text) {
    std::istringstream lines(text);
    std::size_t width = 0;
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("source") && !line.starts_with("file")) width = std::max(width, line.size());
    return width;
}
const config::Json& at(const config::Json& json, std::string_view key) {
    for (const auto& [name, value] : std::get<config::Json::Object>(json.value()))
        if (name == key) return value;
    throw InputError("no key " + std::string(key));
}

TEST(ModelTables, a_list_shows_published_figures_in_80_columns) {
    const std::string text = format_model_list({load("resnet50"), load("llama-3.1-405b")});
    EXPECT_THAT(text, HasSubstr("25,557,032"));
    EXPECT_THAT(text, HasSubstr("405,853,388,800"));
    EXPECT_THAT(text, HasSubstr("3x224x224"));
    EXPECT_THAT(text, HasSubstr("4.09"));
    EXPECT_LE(widest(text), 80U);
}

TEST(ModelTables, equal_blocks_are_shown_once_and_totals_count_all) {
    const std::string text = format_model(load("llama-3.1-70b"), 1, DType::bf16);
    EXPECT_THAT(text, HasSubstr("block.0 to block.79 (x80), each:"));
    EXPECT_THAT(text, HasSubstr("70,553,706,496"));
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
    EXPECT_LE(widest(text), 110U);
}

TEST(ModelTables, resnet50_shows_its_activations_and_first_layer) {
    // timm's table of results gives 11.11 M activations for resnet50 at 224 x 224.
    const std::string text = format_model(load("resnet50"), 32, DType::fp32);
    EXPECT_THAT(text, HasSubstr("activations  11.1M"));
    EXPECT_THAT(text, HasSubstr("[64, 112, 112]"));
    EXPECT_THAT(text, HasSubstr("layer1.1 to layer1.2 (x2), each:"));
    // conv1: 2 x 32 x 64 x 112^2 x 147 = 7.55 G
    EXPECT_THAT(text, HasSubstr("7.55G"));
}

TEST(ModelTables, a_tied_weight_is_called_tied) {
    EXPECT_THAT(format_model(load("gpt-small"), 1, DType::fp32), HasSubstr("tied"));
    EXPECT_THAT(format_model(load("llama-3.1-8b"), 1, DType::fp32), Not(HasSubstr("tied")));
}

TEST(ModelTables, json_totals_are_the_sums_of_its_layers) {
    const config::Json json = model_json(load("bert-base"), 2, DType::bf16);
    double forward = 0;
    std::int64_t parameters = 0;
    for (const auto& layer : std::get<config::Json::Array>(at(json, "layers").value())) {
        forward += std::get<double>(at(layer, "forward_flops").value());
        parameters += std::get<std::int64_t>(at(layer, "parameters").value());
    }
    EXPECT_DOUBLE_EQ(std::get<double>(at(at(json, "totals"), "forward_flops").value()), forward);
    EXPECT_EQ(parameters, 109'514'298);
    EXPECT_EQ(std::get<std::int64_t>(at(json, "parameters").value()), parameters);
}

TEST(ModelTables, a_batch_of_zero_is_refused) {
    const model::Model model = load("vgg16");
    EXPECT_THROW(format_model(model, 0, DType::fp32), InputError);
}

}  // namespace
}  // namespace lockstep::report
