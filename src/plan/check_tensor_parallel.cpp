#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "plan/check_parts.hpp"
#include "plan/nearby.hpp"
#include "plan/tensor_split.hpp"

namespace lockstep::plan {

namespace {

/// A vocabulary is padded to a multiple of this, so that kernels run on whole tiles (Megatron-LM's default).
constexpr std::int64_t vocabulary_tile = 128;

/// An extent of the model that tp splits.
struct SplitExtent {
    std::string_view name;
    std::int64_t size = 0;
    bool operator==(const SplitExtent&) const = default;
};

void add(std::vector<SplitExtent>& extents, SplitExtent extent) {
    if (std::ranges::find(extents, extent) == extents.end()) extents.push_back(extent);
}

/// Each once: heads and key/value heads of split attention, inner widths of split pairs of linear layers, vocabularies.
std::vector<SplitExtent> split_extents(const model::Model& model, int tp) {
    std::vector<SplitExtent> extents;
    const std::vector<LayerSplit> splits = split_layers(model, tp, false);
    for (std::size_t i = 0; i < splits.size(); ++i) {
        const model::Layer& layer = model.layers[i];
        const bool is_inside = splits[i].input == Spread::features;
        if (const auto* attention = std::get_if<model::Attention>(&layer.kind); attention != nullptr && is_inside) {
            add(extents, {"heads", attention->heads});
            add(extents, {"kv_heads", attention->kv_heads});
        }
        if (splits[i].weights == WeightSplit::rows &&
            !std::holds_alternative<model::Attention>(model.layer(layer.inputs.front()).kind))
            add(extents, {"ffn", std::get<model::Linear>(layer.kind).in_features});
        if (const auto* loss = std::get_if<model::SoftmaxLoss>(&layer.kind); loss != nullptr && is_inside)
            add(extents, {"vocab", loss->classes});
        if (const auto* table = std::get_if<model::Embedding>(&layer.kind);
            table != nullptr && table->vocab / tp >= least_vocabulary_part)
            add(extents, {"vocab", table->vocab});
    }
    return extents;
}

/// "gpt-small" of "gpt-small[layers=2]".
std::string base_name(const std::string& name) { return name.substr(0, name.find('[')); }

void check_extents(const Plan& plan, const model::Model& model, Refusals& refusals) {
    const int tp = plan.mesh.tp;
    const std::vector<SplitExtent> extents = split_extents(model, tp);
    std::int64_t common = 0;
    for (const SplitExtent& extent : extents)
        if (extent.name != "vocab") common = std::gcd(common, extent.size);
    if (common == 0) {
        refusals.push_back(
            fmt::format("tp={} splits attention and pairs of linear layers, and this model has none; use "
                        "tp=1",
                        tp));
        return;
    }
    for (const SplitExtent& extent : extents) {
        if (extent.size % tp == 0) continue;
        if (extent.name == "vocab") {
            const std::int64_t tile = std::lcm<std::int64_t>(vocabulary_tile, tp);
            const std::int64_t padded = (extent.size + tile - 1) / tile * tile;
            refusals.push_back(
                fmt::format("tp={} doesn't divide vocab={}; pad the vocabulary to {} (model: {{base: {}, "
                            "vocab: {}}})",
                            tp, extent.size, padded, base_name(model.name), padded));
        } else {
            refusals.push_back(fmt::format("tp={} doesn't divide {}={}; use tp={}", tp, extent.name, extent.size,
                                           either(divisors(common))));
        }
    }
}

}  // namespace

void check_tensor_parallel(const Plan& plan, const model::Model& model, Refusals& refusals) {
    const int tp = plan.mesh.tp;
    if (plan.split.sequence_parallel && tp == 1)
        refusals.emplace_back(
            "sequence_parallel splits what tp leaves whole, and tp is 1; use tp of 2 or more, or "
            "sequence_parallel: false");
    if (plan.split.async_tp && !plan.split.sequence_parallel)
        refusals.emplace_back(
            "async_tp divides the gathers of sequence parallelism; add sequence_parallel: true, or use "
            "async_tp: false");
    if (tp == 1) return;
    if (!is_over_tokens(model)) {
        refusals.push_back(
            fmt::format("tp={} splits transformers over tokens, and this is a model of images; use tp=1", tp));
    } else if (model.has_memory()) {
        refusals.push_back(
            fmt::format("tp={} with attention to a memory or to relative positions is not built yet; use tp=1", tp));
    } else if (model.has_experts()) {
        refusals.push_back(fmt::format("tp={} with experts is not built yet; use tp=1 and ep", tp));
    } else if (model.lora_rank > 0) {
        refusals.push_back(fmt::format("tp={} with low-rank adapters (lora) is not built yet; use tp=1", tp));
    } else {
        check_extents(plan, model, refusals);
    }
}

}  // namespace lockstep::plan
