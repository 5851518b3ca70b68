#include "experiment/published_names.hpp"

#include <fmt/format.h>

namespace lockstep::experiment {

namespace {

using config::Diagnostics;
using config::Node;
using config::Object;

constexpr std::string_view folder = "experiments/published";

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string text_of(const Node& entry, std::string_view key) {
    const Node* node = entry.find(key);
    return node != nullptr ? node->text() : "";
}

std::vector<Node> entries_of(const Node& table, std::string_view key) {
    const Node* node = table.find(key);
    return node != nullptr ? node->items() : std::vector<Node>{};
}

void check_frameworks(Object& table) {
    for (const Node& item : table.nodes("frameworks")) {
        Object entry(item, "frameworks", table.diagnostics());
        entry.text("name");
        entry.text("profile");
        entry.text_or("model", "");
        const auto plan = entry.node("plan");
        if (plan && !plan->is_mapping()) entry.error("plan", "wants keys and values, such as {async_tp: true}");
        entry.finish();
    }
}

void check_systems(Object& table) {
    for (const Node& item : table.nodes("systems")) {
        Object entry(item, "systems", table.diagnostics());
        entry.text("begins");
        entry.node("machine");
        if (entry.has("machine") == entry.has("skip"))
            entry.error("machine", "wants machine (what it is called here) or skip (why it isn't), one of them");
        entry.text_or("skip", "");
        entry.finish();
    }
}

Node scalar(const std::string& text, const Node& near) { return Node::make_scalar(text, near.where()); }

}  // namespace

PublishedNames::PublishedNames(const config::DataPath& data)
    : table_(config::parse_file(data.find("table of names", folder, "names"))) {
    Diagnostics diagnostics;
    Object table(table_, "names", diagnostics);
    for (const auto* key : {"networks", "models"})
        if (const auto node = table.node(key); node && !node->is_mapping())
            table.error(key, "wants names with what they are called here");
    check_frameworks(table);
    check_systems(table);
    table.finish();
    diagnostics.throw_if_any();
}

Node PublishedNames::machine(const std::string& name, int nodes) const {
    const Node* networks = table_.find("networks");
    const Node* network = networks != nullptr ? networks->find(name) : nullptr;
    if (network == nullptr || nodes < 2) return scalar(name, table_);
    const auto& where = network->where();
    return Node::make_mapping({{"node", where, scalar(name, *network)},
                               {"count", where, scalar(fmt::to_string(nodes), *network)},
                               {"network", where, *network}},
                              where);
}

Node PublishedNames::model(const std::string& name) const {
    const Node* models = table_.find("models");
    const Node* model = models != nullptr ? models->find(name) : nullptr;
    return model != nullptr ? *model : scalar(name, table_);
}

PublishedFramework PublishedNames::framework(std::string_view name, std::string_view model) const {
    const std::string_view wanted = trimmed(name);
    for (const Node& entry : entries_of(table_, "frameworks")) {
        if (text_of(entry, "name") != wanted) continue;
        const Node* only = entry.find("model");
        if (only != nullptr && only->text() != model) continue;
        const Node* plan = entry.find("plan");
        return {text_of(entry, "profile"), plan != nullptr ? *plan : Node{}};
    }
    return {std::string(wanted), Node{}};
}

std::optional<PublishedSystem> PublishedNames::system(std::string_view name) const {
    for (const Node& entry : entries_of(table_, "systems")) {
        if (!name.starts_with(text_of(entry, "begins"))) continue;
        const Node* machine = entry.find("machine");
        return PublishedSystem{machine != nullptr ? *machine : Node{}, text_of(entry, "skip")};
    }
    return std::nullopt;
}

}  // namespace lockstep::experiment
