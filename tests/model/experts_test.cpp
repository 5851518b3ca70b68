// Mixtures of experts: layers, parameters, and what of their work counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/shipped.hpp"

namespace lockstep::model {
namespace {

using ::testing::HasSubstr;

Model with_experts(const std::string& experts, const std::string& more = "") {
    return model_of("gpt: {layers: 4, hidden: 64, heads: 4, vocab: 100, seq_len: 16, " + more + "experts: " + experts +
                    "}\n");
}
std::int64_t count_of(const Model& model, std::string_view kind) {
    return std::ranges::count_if(model.layers, [&](const Layer& layer) { return kind_name(layer.kind) == kind; });
}
void expect_refused(const std::string& text, const std::string& reason) {
    try {
        model_of(text);
        ADD_FAILURE() << "read " << text;
    } catch (const InputError& error) { EXPECT_THAT(error.what(), HasSubstr(reason)); }
}

// Jiang et al. 2024: 46.7 billion parameters, of which a token meets 12.9 billion.
TEST(Experts, mixtral_8x7b_has_46_702_792_704_parameters_and_12_9_billion_active) {
    const Model mixtral = load_shipped("mixtral-8x7b");
    EXPECT_EQ(mixtral.parameter_count(), 46'702'792'704);
    std::int64_t active = 0;
    for (const Layer& layer : mixtral.layers)
        for (const ParameterId id : layer.parameters) {
            const std::int64_t elements = mixtral.parameters[id.index()].elements();
            active += std::holds_alternative<GroupedLinear>(layer.kind) ? elements / 8 * 2 : elements;
        }
    EXPECT_EQ(active, 12'879'925'248);
}

// A token's 2 of 4 experts: twice the products of one MLP (64 x 256 and back), and the router's 64 x 4, over 16
// positions.
TEST(Experts, only_the_experts_a_token_takes_count_as_work) {
    const Model dense = model_of("gpt: {layers: 4, hidden: 64, heads: 4, vocab: 100, seq_len: 16, bias: false}\n");
    const Model mixed = with_experts("{count: 4, top_k: 2, capacity: 1.25, imbalance: 0.5}", "bias: false, ");
    EXPECT_EQ(forward_multiply_adds(mixed) - forward_multiply_adds(dense), 4 * 16 * (2 * 64 * 256 + 64 * 4));
    EXPECT_EQ(mixed.parameter_count() - dense.parameter_count(), 4 * (3 * 2 * 64 * 256 + 64 * 4));
}

TEST(Experts, every_nth_block_has_them) {
    EXPECT_EQ(count_of(with_experts("{count: 4}"), "dispatch"), 4);
    const Model second = with_experts("{count: 4, every: 2}");
    EXPECT_EQ(count_of(second, "dispatch"), 2);
    EXPECT_EQ(count_of(second, "grouped_linear"), 4);
    EXPECT_TRUE(second.has_experts());
    for (const Layer& layer : second.layers)
        EXPECT_EQ(std::holds_alternative<Dispatch>(layer.kind),
                  layer.name == "block.1.dispatch" || layer.name == "block.3.dispatch");
    EXPECT_FALSE(load_shipped("gpt-small").has_experts());
}

TEST(Experts, can_be_written_layer_by_layer) {
    const Model model = model_of(
        "input: {tokens: 16, vocab: 50}\n"
        "layers:\n"
        "  - {op: embedding, hidden: 8, name: embedding}\n"
        "  - {op: linear, out: 4, bias: false, name: router}\n"
        "  - {op: dispatch, experts: 4, top_k: 2, capacity: 1.5, in: embedding}\n"
        "  - {op: grouped_linear, out: 24, name: up}\n"
        "  - {op: relu}\n"
        "  - {op: grouped_linear, out: 8, name: down}\n"
        "  - {op: combine, in: [down, router]}\n"
        "  - {op: linear, out: 50}\n"
        "  - {op: softmax_loss}\n");
    EXPECT_EQ(count_of(model, "grouped_linear"), 2);
    EXPECT_EQ(model.parameter_count(), 50 * 8 + 8 * 4 + 4 * 8 * 24 * 2 + 50 * 8 + 50);
}

TEST(Experts, what_can_not_be_is_refused_with_the_way_out) {
    const std::string sizes = "gpt: {layers: 1, hidden: 64, heads: 4, vocab: 100, seq_len: 16, ";
    expect_refused(sizes + "experts: {count: 4, top_k: 5}}\n", "top_k 5 is more than the 4 experts");
    expect_refused(sizes + "experts: {count: 4, top_k: 2, imbalance: 1.5}}\n", "use at most 1");
    expect_refused(sizes + "experts: {count: 4}, lora: {rank: 4}}\n", "use targets: [qkv, proj]");
    const std::string dag =
        "input: {tokens: 16, vocab: 50}\nlayers:\n"
        "  - {op: embedding, hidden: 8}\n";
    expect_refused(dag + "  - {op: grouped_linear, out: 8}\n  - {op: softmax_loss}\n", "put it behind a dispatch");
    expect_refused(dag + "  - {op: dispatch, experts: 4}\n  - {op: linear, out: 8}\n  - {op: softmax_loss}\n",
                   "put combine behind them");
}

}  // namespace
}  // namespace lockstep::model
