#include "experiment/axes.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <set>
#include <string_view>

namespace lockstep::experiment {

using config::Node;

namespace {

/// The plan key whose value is itself a list.
constexpr std::string_view list_value = "stage_blocks";

constexpr std::array<std::string_view, 8> list_keys{"model",          "machine",      "precision",    "framework",
                                                    "batch_per_rank", "global_batch", "accumulation", "optimizer"};

std::vector<Node> checked_values(std::string_view path, const Node& list, config::Diagnostics& diagnostics) {
    if (list.items().empty())
        diagnostics.error(list.where(), fmt::format("{}: an empty list; give a value or leave the key out", path));
    std::set<std::string> seen;
    std::vector<Node> values;
    for (const Node& item : list.items()) {
        if (item.is_sequence())
            diagnostics.error(item.where(), fmt::format("{}: a list in a list; write one flat list", path));
        else if (!seen.insert(item.canonical()).second)
            diagnostics.error(item.where(),
                              fmt::format("{}: {} is in the list twice; keep one", path, inline_text(item)));
        else
            values.push_back(item);
    }
    return values;
}

void add_axis(std::vector<ListAxis>& axes, std::string path, const Node* value, config::Diagnostics& diagnostics) {
    if (value == nullptr || !value->is_sequence()) return;
    std::vector<Node> values = checked_values(path, *value, diagnostics);
    // A list without a usable value was reported; null stands in for it, so that the other keys are still read.
    if (!values.empty()) axes.push_back({std::move(path), std::move(values)});
}

/// The lists of a mapping and of the mappings in it.
void add_axes_below(std::vector<ListAxis>& axes, const std::string& path, const Node& mapping,
                    config::Diagnostics& diagnostics) {
    for (const auto& entry : mapping.entries()) {
        const std::string below = path + "." + entry.key;
        add_axis(axes, below, &entry.value, diagnostics);
        add_axes_below(axes, below, entry.value, diagnostics);
    }
}

}  // namespace

std::vector<ListAxis> find_axes(const Node& document, config::Diagnostics& diagnostics) {
    std::vector<ListAxis> axes;
    for (const auto key : list_keys) add_axis(axes, std::string(key), document.find(key), diagnostics);
    for (const std::string parent : {"collective", "plan", "failures"})
        if (const Node* const keys = document.find(parent))
            for (const auto& entry : keys->entries())
                if (entry.key != list_value) add_axis(axes, parent + "." + entry.key, &entry.value, diagnostics);
    if (const Node* const knobs = document.find("knobs")) add_axes_below(axes, "knobs", *knobs, diagnostics);
    return axes;
}

std::size_t point_count(const std::vector<ListAxis>& axes) {
    std::size_t count = 1;
    for (const ListAxis& axis : axes) {
        if (count > SIZE_MAX / axis.values.size()) return SIZE_MAX;
        count *= axis.values.size();
    }
    return count;
}

PointDocument point_document(const Node& document, const std::vector<ListAxis>& axes, std::size_t number) {
    PointDocument point{document, ""};
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        const Node& value = axis->values[number % axis->values.size()];
        number /= axis->values.size();
        point.document = point.document.with(axis->path, value);
        if (axis->values.size() == 1) continue;
        const std::string part = fmt::format("{}={}", axis->path, inline_text(value));
        point.label = point.label.empty() ? part : part + " " + point.label;
    }
    return point;
}

std::string inline_text(const Node& node) {
    std::vector<std::string> parts;
    switch (node.kind()) {
        case Node::Kind::null: return "null";
        case Node::Kind::scalar: return node.text();
        case Node::Kind::sequence:
            for (const Node& item : node.items()) parts.push_back(inline_text(item));
            return fmt::format("[{}]", fmt::join(parts, ", "));
        case Node::Kind::mapping:
            for (const auto& entry : node.entries())
                parts.push_back(fmt::format("{}: {}", entry.key, inline_text(entry.value)));
            return fmt::format("{{{}}}", fmt::join(parts, ", "));
    }
    return "";
}

}  // namespace lockstep::experiment
