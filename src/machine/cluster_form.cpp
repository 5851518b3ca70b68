#include "machine/cluster_form.hpp"

#include <fmt/format.h>

#include "machine/field.hpp"

namespace lockstep::machine {

namespace {

using config::Node;
using config::Object;

NodeCount read_node_count(Object& object) {
    const auto node = object.node("node");
    return {object.text("node"), static_cast<int>(object.integer_or("count", 1, 1, max_nodes)),
            node ? node->where() : object.self().where()};
}

std::vector<NodeCount> read_node_counts(Object& object) {
    if (!object.has("nodes")) return {read_node_count(object)};
    if (object.has("node") || object.has("count"))
        object.error("nodes", "is given beside node or count; write all nodes under nodes");
    std::vector<NodeCount> counts;
    for (const Node& item : object.nodes("nodes")) {
        Object entry(item, "nodes", object.diagnostics());
        counts.push_back(read_node_count(entry));
        entry.finish();
    }
    if (counts.empty()) object.error("nodes", "an empty list; write such as nodes: [{node: dgx-h100, count: 2}]");
    return counts;
}

}  // namespace

int ClusterForm::count() const {
    int sum = 0;
    for (const NodeCount& some : nodes) sum += some.count;
    return sum;
}

std::string ClusterForm::name() const {
    std::string name;
    for (const NodeCount& some : nodes) name += fmt::format("{}{}x{}", name.empty() ? "" : "+", some.count, some.node);
    return name;
}

bool is_cluster(const Node& node) { return node.find("node") != nullptr || node.find("nodes") != nullptr; }

ClusterForm read_cluster_form(const Node& node, config::Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.count();
    Object object(node, "machine", diagnostics);
    ClusterForm form;
    form.nodes = read_node_counts(object);
    form.network = object.node("network");
    form.faults = read_faults(object);
    if (object.has("title")) form.title = object.text("title");
    form.sources = texts_if_any(object, "sources");
    form.notes = texts_if_any(object, "notes");
    object.finish();
    std::int64_t sum = 0;
    for (const NodeCount& some : form.nodes) sum += some.count;
    if (sum > max_nodes && diagnostics.count() == before)
        object.error("nodes", fmt::format("are {} together; at most {} can be described", sum, max_nodes));
    return form;
}

}  // namespace lockstep::machine
