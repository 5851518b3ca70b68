// Parameters and multiply-adds of the models in models/ against what is published.
#include <gtest/gtest.h>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

TEST(PublishedCounts, resnet50_has_25_557_032_parameters_and_4_11_G_multiply_adds) {
    const Model model = load_shipped("resnet50");  // torchvision.models.resnet50
    EXPECT_EQ(model.parameter_count(), 25'557'032);
    EXPECT_NEAR(static_cast<double>(forward_multiply_adds(model)), 4.11e9, 0.01 * 4.11e9);
}

TEST(PublishedCounts, vgg16_has_138_357_544_parameters_and_15_5_G_multiply_adds) {
    const Model model = load_shipped("vgg16");  // torchvision.models.vgg16
    EXPECT_EQ(model.parameter_count(), 138'357'544);
    EXPECT_NEAR(static_cast<double>(forward_multiply_adds(model)), 15.5e9, 0.01 * 15.5e9);
}

// BertForMaskedLM with h hidden, L layers, V = 30522: embeddings (V + 512 + 2) h + 2h; a layer 12 h^2 + 13 h; head
// h^2 + h + 2h + V, the decoder's weight being the token embedding.
TEST(PublishedCounts, bert_base_for_masked_lm_has_109_514_298_parameters) {
    EXPECT_EQ(load_shipped("bert-base").parameter_count(), 109'514'298);
}

TEST(PublishedCounts, bert_large_for_masked_lm_has_335_174_458_parameters) {
    EXPECT_EQ(load_shipped("bert-large").parameter_count(), 335'174'458);
}

TEST(PublishedCounts, gpt_small_is_gpt2_with_124_439_808_parameters) {
    EXPECT_EQ(load_shipped("gpt-small").parameter_count(), 124'439'808);
}

// 12 h^2 L (1 + 13 / 12h) + (V + s) h + 2h with h = 12288, L = 96, V = 50257, s = 2048; published as 175 B (rounded).
TEST(PublishedCounts, gpt3_175b_has_174_604_259_328_parameters) {
    EXPECT_EQ(load_shipped("gpt3-175b").parameter_count(), 174'604'259'328);
}

TEST(PublishedCounts, llama_3_1_has_8_030_261_248_and_70_553_706_496_and_405_853_388_800_parameters) {
    EXPECT_EQ(load_shipped("llama-3.1-8b").parameter_count(), 8'030'261'248);
    EXPECT_EQ(load_shipped("llama-3.1-70b").parameter_count(), 70'553'706'496);
    EXPECT_EQ(load_shipped("llama-3.1-405b").parameter_count(), 405'853'388'800);
}

// Per token of a dense block with full attention: 12 h^2 + 2 s h multiply-adds (Narayanan et al. 2021, appendix: 24 B s
// h^2 (1 + s / 6h) flops a layer), and V h for the output layer.
TEST(PublishedCounts, gpt3_multiply_adds_follow_the_formula_of_megatron_lm) {
    const double h = 12288, s = 2048, layers = 96, vocab = 50257;
    const double expected = s * (layers * 12 * h * h * (1 + s / (6 * h)) + vocab * h);
    EXPECT_DOUBLE_EQ(static_cast<double>(forward_multiply_adds(load_shipped("gpt3-175b"))), expected);
}

TEST(PublishedCounts, every_shipped_model_can_be_read_and_ends_in_its_loss) {
    const auto names = model_names(shipped_models());
    EXPECT_GE(names.size(), 10U);
    for (const auto& name : names) {
        const Model model = load_shipped(name);
        EXPECT_EQ(model.name, name);
        EXPECT_TRUE(std::holds_alternative<SoftmaxLoss>(model.layers.back().kind)) << name;
        EXPECT_TRUE(model.layers.back().output == Shape{}) << name;
        EXPECT_FALSE(model.sources.empty()) << name;
    }
}

}  // namespace
}  // namespace lockstep::model
