#include "model/block_parameters.hpp"

#include <fmt/format.h>

namespace lockstep::model {

namespace {

std::vector<std::string> names_of(const BlockValues& values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) names.push_back(name);
    return names;
}

}  // namespace

BlockValues bind_parameters(const std::string& block, const config::Node& parameters, const config::Node& with,
                            const config::Location& use, config::Diagnostics& diagnostics) {
    BlockValues values;
    for (const auto& parameter : parameters.entries()) values[parameter.key] = parameter.value;
    const std::vector<std::string> known = names_of(values);
    for (const auto& given : with.entries()) {
        const auto place = values.find(given.key);
        if (place == values.end())
            diagnostics.error(given.where, fmt::format("block '{}' has no parameter '{}'{}", block, given.key,
                                                       config::did_you_mean(given.key, known)));
        else
            place->second = given.value;
    }
    for (const auto& [name, value] : values)
        if (value.is_null())
            diagnostics.error(
                use, fmt::format("block '{}' wants a value for '{}'; write with: {{{}: ...}}", block, name, name));
    return values;
}

config::Node fill_parameters(const config::Node& node, const BlockValues& values, config::Diagnostics& diagnostics) {
    if (node.is_scalar() && !node.is_quoted() && node.text().starts_with('$')) {
        const std::string name = node.text().substr(1);
        const auto value = values.find(name);
        if (value == values.end()) {
            diagnostics.error(node.where(), fmt::format("unknown parameter '${}'{}", name,
                                                        config::did_you_mean(name, names_of(values))));
            return node;
        }
        if (value->second.is_scalar()) return config::Node::make_scalar(value->second.text(), node.where());
        return value->second;
    }
    if (node.is_sequence()) {
        std::vector<config::Node> items;
        for (const auto& item : node.items()) items.push_back(fill_parameters(item, values, diagnostics));
        return config::Node::make_sequence(std::move(items), node.where());
    }
    if (node.is_mapping()) {
        std::vector<config::Node::Entry> entries;
        for (const auto& entry : node.entries())
            entries.push_back({entry.key, entry.where, fill_parameters(entry.value, values, diagnostics)});
        return config::Node::make_mapping(std::move(entries), node.where());
    }
    return node;
}

}  // namespace lockstep::model
