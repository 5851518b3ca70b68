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

TEST(PublishedCounts, resnext101_32x4d_has_44_177_704_parameters_and_8_01_G_multiply_adds) {
    const Model model = load_shipped("resnext101-32x4d");  // timm resnext101_32x4d
    EXPECT_EQ(model.parameter_count(), 44'177'704);
    EXPECT_NEAR(static_cast<double>(forward_multiply_adds(model)), 8.01e9, 0.01 * 8.01e9);
    EXPECT_EQ(why_only_simulated(model), "");
}

TEST(PublishedCounts, se_resnext101_32x4d_has_48_955_416_parameters) {
    const Model model = load_shipped("se-resnext101-32x4d");  // timm seresnext101_32x4d
    EXPECT_EQ(model.parameter_count(), 48'955'416);
    EXPECT_NE(why_only_simulated(model), "");
}

// torchvision.models.inception_v3: 27,161,264, of which the auxiliary classifier has 3,326,696 (1x1 and 5x5
// convolution, norms, linear).
TEST(PublishedCounts, inception3_has_23_834_568_parameters_and_5_7_G_multiply_adds) {
    const Model model = load_shipped("inception3");
    EXPECT_EQ(model.parameter_count(), 27'161'264 - 3'326'696);
    EXPECT_NEAR(static_cast<double>(forward_multiply_adds(model)), 5.71e9, 0.01 * 5.71e9);
}

// h = 1024, 6 + 6 layers, 33,712 words: 6 (12 h^2 + 13 h) + 6 (16 h^2 + 19 h) + 4 h + 33,712 h. Vaswani et al. 2017,
// table 3: 213 M with about 37,000 words.
TEST(PublishedCounts, transformer_big_has_210_882_560_parameters) {
    const double count = static_cast<double>(load_shipped("transformer-big-wmt").parameter_count());
    EXPECT_EQ(count, 210'882'560);
    EXPECT_NEAR(count + (37'000 - 33'712) * 1024, 213e6, 0.01 * 213e6);
}

// The published code counts 191,950,298: 267,735 x 512 of embeddings, 16 layers of 3,412,480, and 269 k of biases and
// cluster weights of the adaptive softmax, of which this model has the head's alone.
TEST(PublishedCounts, transformer_xl_base_has_192_M_parameters) {
    const Model model = load_shipped("transformer-xl-base");
    EXPECT_EQ(model.parameter_count(), 267'735 * 512 + 16 * 3'412'480 + 32'768);
    EXPECT_NEAR(static_cast<double>(model.parameter_count()), 191'950'298, 0.002 * 191'950'298);
    EXPECT_TRUE(model.has_memory());
}

// 18 layers of 13,640,704; embeddings 19,997 x 1024 + 20,000 x 256 + 160,000 x 64 + 67,738 x 16; four projections into
// 1024 and one of the output: 285.1 M.
TEST(PublishedCounts, transformer_xl_large_has_285_M_parameters) {
    const double layers = 18 * 13'640'704.0;
    const double embeddings = 19'997 * 1024.0 + 20'000 * 256.0 + 160'000 * 64.0 + 67'738 * 16.0;
    const double projections = 1024.0 * (1024 + 256 + 64 + 16) + 1024.0 * 1024;
    const double count = static_cast<double>(load_shipped("transformer-xl-large").parameter_count());
    EXPECT_NEAR(count, layers + embeddings + projections, 0.01 * count);
}

TEST(PublishedCounts, llama_2_has_6_738_415_616_and_13_015_864_320_and_68_976_648_192_parameters) {
    EXPECT_EQ(load_shipped("llama2-7b").parameter_count(), 6'738'415'616);
    EXPECT_EQ(load_shipped("llama2-13b").parameter_count(), 13'015'864'320);
    EXPECT_EQ(load_shipped("llama2-70b").parameter_count(), 68'976'648'192);
    EXPECT_EQ(load_shipped("llama3-8b").parameter_count(), 8'030'261'248);
}

// Technical report, table 1: 331.6 B without and 9.4 B of embeddings, both ends of the model.
TEST(PublishedCounts, nemotron_340b_has_341_B_parameters) {
    EXPECT_NEAR(static_cast<double>(load_shipped("nemotron-340b").parameter_count()), 341.0e9, 0.001 * 341e9);
}

// By their names: 12 h^2 L + (V + s) h within 5 % of 125 M, 350 M, 760 M, 1.3 B, 2.7 B, 6.7 B, 13 B, 30 B, 65 B (the
// "70b" of the benchmark table has 80 layers of 8192 without a gated MLP).
TEST(PublishedCounts, mpt_models_have_the_parameters_that_their_sizes_give) {
    const std::pair<const char*, double> sizes[] = {{"mpt-125m", 125e6}, {"mpt-350m", 355e6}, {"mpt-760m", 760e6},
                                                    {"mpt-1b", 1.31e9},  {"mpt-3b", 2.65e9},  {"mpt-7b", 6.66e9},
                                                    {"mpt-13b", 12.9e9}, {"mpt-30b", 30e9},   {"mpt-70b", 64.9e9}};
    for (const auto& [name, size] : sizes)
        EXPECT_NEAR(static_cast<double>(load_shipped(name).parameter_count()), size, 0.05 * size) << name;
}

TEST(PublishedCounts, gpt3_20b_has_20_3_B_parameters) {
    EXPECT_NEAR(static_cast<double>(load_shipped("gpt3-20b").parameter_count()), 20.26e9, 0.01 * 20.26e9);
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
    EXPECT_GE(names.size(), 30U);
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
