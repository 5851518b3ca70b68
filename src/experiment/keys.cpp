#include "experiment/keys.hpp"

#include <fmt/format.h>

#include <set>

#include "machine/cluster_form.hpp"

namespace lockstep::experiment {

using config::Node;

Precision read_precision(config::Object& object) {
    const std::string text = object.choice_or("precision", {"fp32", "tf32", "fp16-amp", "bf16", "fp8"}, "fp32");
    return parse_precision(text).value_or(Precision::fp32);
}

Node read_machine(config::Object& object) {
    const Node machine = object.node("machine").value_or(Node{});
    if (machine.is_mapping()) {
        machine::read_cluster_form(machine, object.diagnostics());
    } else if (!machine.is_scalar() || machine.text().empty()) {
        object.error("machine", "wants a name, a file, host, or {node: NAME, count: N, network: NAME}");
    }
    return machine;
}

std::vector<int> read_ranks(config::Object& object) {
    std::vector<int> ranks;
    std::set<std::int64_t> seen;
    const std::vector<Node> items = object.nodes("ranks");
    if (items.empty()) object.error("ranks", "an empty list; give a count such as [1, 2]");
    if (items.size() > max_rank_counts) object.error("ranks", fmt::format("more than {} counts", max_rank_counts));
    for (const Node& item : items) {
        // Each entry is read as a key of its own, so that it is judged and located like any other number.
        const Node one = Node::make_mapping({{"ranks", item.where(), item}}, item.where());
        config::Object entry(one, "ranks", object.diagnostics());
        const auto errors_before = object.diagnostics().count();
        const std::int64_t count = entry.integer("ranks", 1, plan::max_ranks);
        if (object.diagnostics().count() != errors_before) continue;
        if (!seen.insert(count).second)
            object.diagnostics().error(item.where(), fmt::format("ranks: {} is in the list twice; keep one", count));
        ranks.push_back(static_cast<int>(count));
    }
    return ranks;
}

plan::BatchRequest read_batch(config::Object& object) {
    plan::BatchRequest batch;
    const bool is_per_rank = object.has("batch_per_rank");
    const bool is_global = object.has("global_batch");
    if (is_per_rank) batch.per_rank = object.integer("batch_per_rank", 1, plan::max_global_batch);
    if (is_global) batch.global = object.integer("global_batch", 1, plan::max_global_batch);
    if (is_per_rank && is_global)
        object.error(
            "global_batch",
            "is given beside batch_per_rank; keep batch_per_rank (weak scaling) or global_batch (strong scaling)");
    if (!is_per_rank && !is_global)
        object.error("", "no batch; give batch_per_rank (weak scaling) or global_batch (strong scaling)");
    if (object.has("accumulation"))
        batch.accumulation = static_cast<int>(object.integer("accumulation", 1, plan::max_accumulation));
    return batch;
}

std::optional<InputPipeline> read_input(config::Object& object) {
    const auto node = object.node("input");
    if (!node) return std::nullopt;
    config::Object input(*node, "input", object.diagnostics());
    const auto errors_before = object.diagnostics().count();
    InputPipeline pipeline{input.bytes("bytes_per_sample"), input.bandwidth("rate")};
    input.finish();
    if (object.diagnostics().count() != errors_before) return std::nullopt;
    if (pipeline.bytes_per_sample <= Bytes{0})
        input.error("bytes_per_sample", "wants more than 0; leave input out for none");
    if (pipeline.rate <= Bandwidth{0}) input.error("rate", "wants more than 0; leave input out for no limit");
    return pipeline;
}

plan::Optimizer read_optimizer(config::Object& object, plan::Optimizer fallback) {
    const std::string text = object.choice_or("optimizer", {"sgd-momentum", "adam"}, std::string(to_string(fallback)));
    return text == to_string(plan::Optimizer::adam) ? plan::Optimizer::adam : plan::Optimizer::sgd_momentum;
}

}  // namespace lockstep::experiment
