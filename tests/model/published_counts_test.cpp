// Parameters and multiply-adds of the models in models/ against what is published.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/model.hpp"

namespace lockstep::model {
namespace {

config::DataPath shipped() {
    return config::DataPath(std::vector<std::filesystem::path>{std::filesystem::path(LOCKSTEP_SOURCE_DIR)});
}
Model load(std::string_view name) { return load_model(shipped(), name); }

TEST(PublishedCounts, resnet50_has_25_557_032_parameters_and_4_1_G_multiply_adds) {
    const Model model = load("resnet50");  // torchvision.models.resnet50
    EXPECT_EQ(model.parameter_count(), 25'557'032);
    EXPECT_NEAR(static_cast<double>(forward_multiply_adds(model)), 4.11e9, 0.01 * 4.11e9);
}

TEST(PublishedCounts, gpt_small_is_gpt2_with_124_439_808_parameters) {
    EXPECT_EQ(load("gpt-small").parameter_count(), 124'439'808);
}

}  // namespace
}  // namespace lockstep::model
