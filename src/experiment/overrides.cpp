#include "experiment/overrides.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::experiment {

using config::Node;

Override parse_override(const std::string& text, const std::string& origin) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw UsageError(fmt::format("{} wants PATH=VALUE, got '{}'; write for example {} plan.bucket='25 MiB'", origin,
                                     text, origin));
    return {text.substr(0, equals), text.substr(equals + 1), origin};
}

namespace {

/// The same tree, every node at `where`: line and column in the text of an option tell a user nothing.
Node placed_at(const Node& node, const config::Location& where) {
    switch (node.kind()) {
        case Node::Kind::null: return Node::make_null(where);
        case Node::Kind::scalar:
            return Node::make_scalar(node.text(), where,
                                     node.is_quoted() ? Node::Quoting::quoted : Node::Quoting::plain);
        case Node::Kind::sequence: {
            std::vector<Node> items;
            for (const Node& item : node.items()) items.push_back(placed_at(item, where));
            return Node::make_sequence(std::move(items), where);
        }
        case Node::Kind::mapping: {
            std::vector<Node::Entry> entries;
            for (const auto& entry : node.entries())
                entries.push_back({entry.key, where, placed_at(entry.value, where)});
            return Node::make_mapping(std::move(entries), where);
        }
    }
    throw LogicError("a node of no kind");
}

Node without(const Node& mapping, std::string_view key) {
    std::vector<Node::Entry> kept;
    for (const auto& entry : mapping.entries())
        if (entry.key != key) kept.push_back(entry);
    return Node::make_mapping(std::move(kept), mapping.where());
}

/// An experiment gives one of the two batches: an override of one means it instead of the file's other.
Node without_replaced_batch(const Node& document, const std::vector<Override>& overrides) {
    const auto is_set = [&](std::string_view path) {
        return std::ranges::find(overrides, path, &Override::path) != overrides.end();
    };
    if (!document.is_mapping() || is_set("batch_per_rank") == is_set("global_batch")) return document;
    return without(document, is_set("global_batch") ? "batch_per_rank" : "global_batch");
}

/// "origin: message" with what the parser said about line and column of an option left out.
std::string without_place(const std::string& message, const std::string& label) {
    const auto colon = message.starts_with(label) ? message.find(": ", label.size()) : std::string::npos;
    return colon == std::string::npos ? message : message.substr(colon + 2);
}

}  // namespace

Overridden apply_overrides(const Node& document, const std::vector<Override>& overrides,
                           config::Diagnostics& diagnostics) {
    Overridden result{without_replaced_batch(document, overrides), {}};
    for (const Override& change : overrides) {
        const std::string label = fmt::format("{} {}={}", change.origin, change.path, change.value);
        const config::Location where{label, 0, 0};
        result.origin_of_label[label] = change.origin;
        try {
            const Node value = placed_at(config::parse_text(change.value, label), where);
            result.document = result.document.with(change.path, value);
        } catch (const InputError& failure) { diagnostics.error(where, without_place(failure.what(), label)); }
    }
    return result;
}

}  // namespace lockstep::experiment
