// Transformers from their sizes: layers, parameters, starts, and overrides in an experiment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> kinds_of_group(const Model& model, int group) {
    std::vector<std::string> kinds;
    for (const auto& layer : model.layers)
        if (layer.repeat_group == group) kinds.emplace_back(kind_name(layer.kind));
    return kinds;
}
Model overridden(std::string_view text, std::vector<std::string>* errors = nullptr) {
    config::Diagnostics diagnostics;
    Model model = load_model(shipped_models(), config::parse_text(text, "exp.yaml"), diagnostics);
    if (errors != nullptr)
        *errors = diagnostics.errors();
    else
        diagnostics.throw_if_any();
    return model;
}

TEST(Transformer, a_gpt_block_is_pre_norm_with_dropout_where_gpt2_has_it) {
    EXPECT_THAT(kinds_of_group(load_shipped("gpt-small"), 11),
                ElementsAre("layer_norm", "linear", "attention", "linear", "dropout", "add", "layer_norm", "linear",
                            "gelu", "linear", "dropout", "add"));
}

TEST(Transformer, a_llama_block_is_gated_and_rotary_with_rms_norms_and_no_dropout) {
    const Model model = load_shipped("llama-3.1-8b");
    EXPECT_THAT(kinds_of_group(model, 31), ElementsAre("rms_norm", "linear", "rotary", "attention", "linear", "add",
                                                       "rms_norm", "linear", "gated_silu", "linear", "add"));
    for (const auto& layer : model.layers)
        if (layer.name == "block.0.qkv") { EXPECT_EQ(layer.output, (Shape{8192, (32 + 2 * 8) * 128})); }
}

TEST(Transformer, a_bert_block_is_post_norm_and_looks_both_ways) {
    const Model model = load_shipped("bert-base");
    EXPECT_THAT(kinds_of_group(model, 0), ElementsAre("linear", "attention", "linear", "dropout", "add", "layer_norm",
                                                      "linear", "gelu", "linear", "dropout", "add", "layer_norm"));
    for (const auto& layer : model.layers)
        if (const auto* attention = std::get_if<Attention>(&layer.kind)) { EXPECT_FALSE(attention->causal); }
    EXPECT_EQ(model.inputs.size(), 2U);
    EXPECT_EQ(model.tokens_per_sample(), 128);
    EXPECT_EQ(model.sample_unit, "sequences");
}

TEST(Transformer, a_tied_output_layer_has_the_weight_of_the_embedding) {
    const Model model = load_shipped("bert-base");
    const Layer& output = model.layers[model.layers.size() - 2];
    EXPECT_EQ(output.parameters.front(), model.layers.front().parameters.front());
    EXPECT_EQ(output.parameters.size(), 2U);  // and a bias of its own
}

TEST(Transformer, weights_start_at_0_02_and_convolutions_as_he_et_al) {
    for (const auto& parameter : load_shipped("gpt-small").parameters)
        if (parameter.role == ParameterRole::weight || parameter.role == ParameterRole::embedding) {
            EXPECT_DOUBLE_EQ(parameter.init_scale, 0.02) << parameter.name;
        }
    const Model resnet = load_shipped("resnet50");
    EXPECT_EQ(resnet.parameters.front().name, "conv1.weight");
    EXPECT_DOUBLE_EQ(resnet.parameters.front().init_scale, std::sqrt(2.0 / (64 * 7 * 7)));
}

TEST(Transformer, an_experiment_overrides_sizes_and_dependent_ones_follow) {
    // 12 h^2 L + 13 h L + (V + s) h + 2 h with h = 512, L = 2, V = 51200, s = 128
    const Model model = overridden("{base: gpt, layers: 2, hidden: 512, heads: 8, seq_len: 128}");
    EXPECT_EQ(model.parameter_count(), 12 * 512 * 512 * 2 + 13 * 512 * 2 + (51200 + 128) * 512 + 2 * 512);
    EXPECT_EQ(model.name, "gpt[heads=8,hidden=512,layers=2,seq_len=128]");
    EXPECT_EQ(overridden("{base: gpt, name: mine, layers: 2}").name, "mine");
    EXPECT_EQ(overridden("resnet50").parameter_count(), 25'557'032);
}

TEST(Transformer, a_wrong_override_is_reported_where_it_is_written) {
    std::vector<std::string> errors;
    overridden("{base: gpt-small, layer: 2}", &errors);
    EXPECT_THAT(errors, ElementsAre(AllOf(HasSubstr("exp.yaml:1:"), HasSubstr("did you mean 'layers'?"))));
    overridden("{base: resnet50, layers: 2}", &errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("only gpt and bert models take sizes")));
    overridden("{layers: 2}", &errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("needs base: NAME")));
    overridden("resnet5", &errors);
    EXPECT_THAT(errors, ElementsAre(AllOf(HasSubstr("exp.yaml:1:1"), HasSubstr("resnet50"))));
}

TEST(Transformer, only_models_with_batch_norm_say_so) {
    EXPECT_TRUE(load_shipped("resnet50").has_batch_norm());
    EXPECT_FALSE(load_shipped("vgg16").has_batch_norm());
    EXPECT_EQ(load_shipped("vgg16").tokens_per_sample(), 0);
}

}  // namespace
}  // namespace lockstep::model
