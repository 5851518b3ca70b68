#include <fmt/format.h>

#include <numeric>

#include "plan/check_parts.hpp"
#include "plan/nearby.hpp"

namespace lockstep::plan {

namespace {

constexpr std::int64_t longest_sequence = 1'000'000'000;

struct AttentionFacts {
    bool is_there = false;
    bool is_causal = false;
    std::int64_t common_heads = 0;  ///< greatest common divisor of all heads and kv_heads
};

AttentionFacts attention_of(const model::Model& model) {
    AttentionFacts facts;
    for (const model::Layer& layer : model.layers)
        if (const auto* attention = std::get_if<model::Attention>(&layer.kind)) {
            facts.is_there = true;
            facts.is_causal = facts.is_causal || attention->causal;
            facts.common_heads = std::gcd(std::gcd(facts.common_heads, attention->heads), attention->kv_heads);
        }
    return facts;
}

/// Equal parts of the sequence: cp (two of a causal ring's rank, so that all have equal work), and tp of each.
void check_length(const Plan& plan, const model::Model& model, const AttentionFacts& attention, Refusals& refusals) {
    const std::int64_t seq = model.tokens_per_sample();
    const bool is_zigzag = plan.mesh.cp > 1 && plan.split.context == ContextAlgorithm::ring && attention.is_causal;
    std::string product;
    std::int64_t parts = 1;
    const auto factor = [&](std::int64_t value, const std::string& name) {
        parts *= value;
        product += product.empty() ? name : " x " + name;
    };
    if (is_zigzag) factor(2, "2");
    if (plan.mesh.cp > 1) factor(plan.mesh.cp, fmt::format("cp={}", plan.mesh.cp));
    if (plan.split.sequence_parallel) factor(plan.mesh.tp, fmt::format("tp={}", plan.mesh.tp));
    if (seq % parts != 0)
        refusals.push_back(fmt::format("seq_len={} doesn't divide into {} = {} equal parts; use a seq_len of {}", seq,
                                       product, parts, nearest_multiples(seq, parts, longest_sequence)));
}

void check_heads(const Plan& plan, const AttentionFacts& attention, Refusals& refusals) {
    const std::int64_t heads = attention.common_heads;
    if (plan.mesh.cp == 1 || plan.split.context == ContextAlgorithm::ring) return;
    if (heads % plan.mesh.tp != 0) return;  // tp has its own refusal
    const std::int64_t of_rank = heads / plan.mesh.tp;
    if (of_rank % plan.mesh.cp != 0)
        refusals.push_back(
            fmt::format("context: all-to-all gives each of cp={} ranks whole heads, and heads and kv_heads "
                        "/ tp have the common divisor {}; use cp={}, or context: ring",
                        plan.mesh.cp, of_rank, either(divisors(of_rank))));
}

}  // namespace

void check_sequence(const Plan& plan, const model::Model& model, Refusals& refusals) {
    const int cp = plan.mesh.cp;
    const bool is_sequence_parallel = plan.split.sequence_parallel && plan.mesh.tp > 1;
    if (cp == 1 && !is_sequence_parallel) return;
    if (!is_over_tokens(model)) {
        if (cp > 1)
            refusals.push_back(
                fmt::format("cp={} splits sequences of tokens, and this is a model of images; use cp=1", cp));
        return;  // tp has its own refusal
    }
    if (const model::Layer* const end = end_of_sequence(model)) {
        if (cp > 1)
            refusals.push_back(fmt::format("cp={} splits the sequence, and layer '{}' ({}) wants it whole; use cp=1",
                                           cp, end->name, model::kind_name(end->kind)));
        if (is_sequence_parallel)
            refusals.push_back(
                fmt::format("sequence_parallel splits the sequence, and layer '{}' ({}) wants it whole; "
                            "use sequence_parallel: false",
                            end->name, model::kind_name(end->kind)));
        return;
    }
    const AttentionFacts attention = attention_of(model);
    if (cp > 1 && !attention.is_there) {
        refusals.push_back(fmt::format("cp={} spreads attention, and this model has none; use cp=1", cp));
        return;
    }
    if (cp > 1 && model.has_memory()) {
        refusals.push_back(
            fmt::format("cp={} with attention to a memory or to relative positions is not built yet; use cp=1", cp));
        return;
    }
    check_length(plan, model, attention, refusals);
    check_heads(plan, attention, refusals);
}

}  // namespace lockstep::plan
