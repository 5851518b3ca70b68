#include "experiment/merged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "config/quantity.hpp"
#include "experiment/defaults.hpp"

namespace lockstep::experiment {

using config::Location;
using config::Node;

namespace {

/// Texts that read back as the same value: the short form when it is exact.
std::string exact_text(Bytes size) {
    const std::string text = config::format(size);
    return config::parse_bytes(text) == size ? text : fmt::format("{} B", size.value);
}
std::string exact_text(Bandwidth rate) {
    const std::string text = config::format(rate);
    return config::parse_bandwidth(text) == rate ? text : fmt::format("{} B/s", rate.value);
}

std::string exact_text(Seconds time) {
    const std::string text = config::format(time);
    return config::parse_seconds(text) == time ? text : fmt::format("{} s", time.value);
}

/// Builds a mapping; a value stands where the document has its key, or at the place given.
class Merger {
public:
    Merger(const Node& document, Location otherwise) : document_(document), otherwise_(std::move(otherwise)) {}

    void text(std::string_view key, std::string text) { node(key, Node::make_scalar(std::move(text), place(key))); }
    template <class T>
    void number(std::string_view key, T value) {
        text(key, fmt::format("{}", value));
    }
    void numbers(std::string_view key, const std::vector<int>& values) {
        std::vector<Node> items;
        for (const int value : values) items.push_back(Node::make_scalar(fmt::format("{}", value), place(key)));
        node(key, Node::make_sequence(std::move(items), place(key)));
    }
    void flag(std::string_view key, bool value) { text(key, value ? "true" : "false"); }
    /// Where values stand from here on that the document doesn't have.
    void otherwise(Location where) { otherwise_ = std::move(where); }
    void node(std::string_view key, Node value) {
        const Location where = value.where();
        entries_.push_back({std::string(key), where, std::move(value)});
    }
    void same(std::string_view key) {
        if (const Node* const value = document_.find(key)) node(key, *value);
    }
    Location place(std::string_view key) const {
        const Node* const value = document_.find(key);
        return value == nullptr ? otherwise_ : value->where();
    }
    Node take() { return Node::make_mapping(std::move(entries_), document_.where()); }

private:
    const Node& document_;
    Location otherwise_;
    std::vector<Node::Entry> entries_;
};

void merge_extents(Merger& merger, const plan::PlanRequest& request) {
    merger.number("tp", request.tp);
    merger.number("pp", request.pp);
    merger.number("cp", request.cp);
    merger.number("ep", request.ep);
    merger.number("replica", request.replica);
    merger.flag("shard_within_node", request.shard_within_node);
}

void merge_split(Merger& merger, const plan::Split& split) {
    merger.number("vpp", split.vpp);
    merger.text("schedule", std::string(to_string(split.schedule)));
    if (!split.stage_blocks.empty()) merger.numbers("stage_blocks", split.stage_blocks);
    merger.flag("sequence_parallel", split.sequence_parallel);
    merger.flag("async_tp", split.async_tp);
    merger.text("context", std::string(to_string(split.context)));
    merger.text("recompute", std::string(to_string(split.recompute)));
    merger.number("zero", split.zero);
    merger.flag("zero_keep", split.zero_keep);
    merger.number("prefetch", split.prefetch);
    merger.flag("reshard_after_forward", split.reshard_after_forward);
    merger.flag("overlap_parameter_gather", split.overlap_parameter_gather);
}

Node merged_plan(const Experiment& point, const Node& document) {
    const Node* const written = document.find("plan");
    const Node plan = written == nullptr ? Node{} : *written;
    Merger merger(plan, {fmt::format("framework {}", point.framework.name), 0, 0});
    merger.text("bucket", exact_text(point.plan.bucket));
    merger.text("first_bucket", exact_text(point.plan.first_bucket));
    merger.flag("overlap", point.plan.overlap);
    merger.otherwise({std::string(default_origin), 0, 0});
    merge_extents(merger, point.plan);
    merge_split(merger, point.plan.split);
    if (point.plan.microbatch > 0) merger.number("microbatch", point.plan.microbatch);
    return merger.take();
}

Node merged_input(const InputPipeline& input, const Node& written) {
    Merger merger(written, written.where());
    merger.text("bytes_per_sample", exact_text(input.bytes_per_sample));
    merger.text("rate", exact_text(input.rate));
    return merger.take();
}

Node merged_link_rates(const machine::Knobs& knobs, const Node& written) {
    Merger merger(written, written.where());
    const auto add = [&](std::string_view key, const std::optional<Bandwidth>& rate) {
        if (rate) merger.text(key, exact_text(*rate));
    };
    add("nvlink", knobs.nvlink);
    add("pcie", knobs.pcie);
    add("socket", knobs.socket);
    add("network", knobs.nic);
    return merger.take();
}

Node merged_knobs(const machine::Knobs& knobs, const Node& written) {
    Merger merger(written, written.where());
    if (knobs.peer_to_peer) merger.flag("peer_to_peer", *knobs.peer_to_peer);
    if (knobs.nics_per_node) merger.number("nics_per_node", *knobs.nics_per_node);
    if (knobs.algorithm) merger.text("nccl_algo", std::string(machine::to_string(*knobs.algorithm)));
    if (knobs.protocol) merger.text("nccl_proto", std::string(machine::to_string(*knobs.protocol)));
    if (knobs.power_cap) merger.text("power_cap", fmt::format("{} W", knobs.power_cap->value));
    if (const Node* const rates = written.find("link_rates"))
        merger.node("link_rates", merged_link_rates(knobs, *rates));
    return merger.take();
}

Node merged_collective(const CollectiveRequest& collective, const Node& written) {
    Merger merger(written, {std::string(default_origin), 0, 0});
    merger.text("kind", std::string(to_string(collective.kind)));
    merger.text("bytes", exact_text(collective.bytes));
    merger.text("dtype", std::string(to_string(collective.dtype)));
    return merger.take();
}

Node merged_failures(const Failures& failures, const Node& written) {
    Merger merger(written, {std::string(default_origin), 0, 0});
    merger.text("mtbf_per_gpu", exact_text(failures.mtbf_per_gpu));
    if (const auto* rate = std::get_if<CheckpointRate>(&failures.checkpoint)) {
        Merger checkpoint(*written.find("checkpoint"), merger.place("checkpoint"));
        checkpoint.text("rate", exact_text(rate->rate));
        merger.node("checkpoint", checkpoint.take());
    } else {
        merger.text("checkpoint", exact_text(std::get<CheckpointTime>(failures.checkpoint).time));
    }
    merger.text("background", exact_text(failures.background));
    merger.text("interval", failures.interval ? exact_text(*failures.interval) : "auto");
    merger.text("restart", exact_text(failures.restart));
    merger.text("detect", exact_text(failures.detect));
    merger.text("work", exact_text(failures.work));
    return merger.take();
}

constexpr std::array<std::string_view, 4> derived_paths{"optimizer", "plan.bucket", "plan.first_bucket",
                                                        "plan.overlap"};

const Node* find_path(const Node& document, std::string_view path) {
    const auto dot = path.find('.');
    const Node* const value = document.find(path.substr(0, dot));
    return value == nullptr || dot == std::string_view::npos ? value : find_path(*value, path.substr(dot + 1));
}

void add_leaves(const std::string& path, const Node& node, std::vector<std::pair<std::string, Node>>& result) {
    if (!node.is_mapping() || node.entries().empty()) {
        result.emplace_back(path, node);
        return;
    }
    for (const auto& entry : node.entries())
        add_leaves(path.empty() ? entry.key : path + "." + entry.key, entry.value, result);
}

void merge_training(Merger& merger, const Experiment& point, const Node& document) {
    merger.text("precision", std::string(to_string(point.precision)));
    merger.same("framework");
    if (point.is_strong_scaling())
        merger.number("global_batch", point.batch.global);
    else
        merger.number("batch_per_rank", point.batch.per_rank);
    if (point.batch.accumulation) merger.number("accumulation", *point.batch.accumulation);
    merger.text("optimizer", std::string(to_string(point.optimizer)));
    merger.node("plan", merged_plan(point, document));
    if (point.input) merger.node("input", merged_input(*point.input, *document.find("input")));
    if (point.failures) merger.node("failures", merged_failures(*point.failures, *document.find("failures")));
}

}  // namespace

Node merged_point(const Experiment& point, const Node& document) {
    Merger merger(document, {std::string(model_origin), 0, 0});
    if (point.collective) merger.node("collective", merged_collective(*point.collective, *document.find("collective")));
    merger.same("model");
    merger.same("machine");
    merger.numbers("ranks", point.ranks);
    if (!point.collective) merge_training(merger, point, document);
    merger.same("variation");
    if (!point.knobs.names().empty()) merger.node("knobs", merged_knobs(point.knobs, *document.find("knobs")));
    merger.number("steps", point.steps);
    merger.number("warmup", point.warmup);
    merger.number("seed", point.seed);
    merger.number("threads_per_rank", point.threads_per_rank);
    return merger.take();
}

Node merged_file(const Node& document, const std::vector<Experiment>& points) {
    Node merged = document;
    for (const auto path : derived_paths) {
        if (find_path(document, path) != nullptr) continue;
        const Node* const first = find_path(points.front().merged, path);
        if (first == nullptr) continue;
        const bool is_shared = std::ranges::all_of(
            points, [&](const Experiment& point) { return find_path(point.merged, path)->text() == first->text(); });
        if (is_shared) merged = merged.with(path, *first);
    }
    // Keys stand in the order of a point's document, whatever the order of the file.
    std::vector<Node::Entry> entries;
    for (const auto& key : points.front().merged.entries())
        if (const Node* const value = merged.find(key.key)) entries.push_back({key.key, value->where(), *value});
    for (const auto& entry : merged.entries())
        if (points.front().merged.find(entry.key) == nullptr) entries.push_back(entry);
    return Node::make_mapping(std::move(entries), merged.where());
}

std::vector<std::pair<std::string, Node>> leaves(const Node& document) {
    std::vector<std::pair<std::string, Node>> result;
    add_leaves("", document, result);
    return result;
}

std::map<std::string, std::string> origins_of(const Node& merged,
                                              const std::map<std::string, std::string>& origin_of_label) {
    std::map<std::string, std::string> origins;
    for (const auto& [path, value] : leaves(merged)) {
        const Location& where = value.where();
        const auto override_origin = origin_of_label.find(where.file);
        origins[path] = override_origin != origin_of_label.end() ? override_origin->second
                        : where.line > 0                         ? fmt::format("{}:{}", where.file, where.line)
                                                                 : where.file;
    }
    return origins;
}

}  // namespace lockstep::experiment
