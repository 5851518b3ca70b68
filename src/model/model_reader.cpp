#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "model/bert.hpp"
#include "model/dag_reader.hpp"
#include "model/gpt.hpp"
#include "model/model.hpp"

namespace lockstep::model {

namespace {

using config::Node;

constexpr std::string_view families[] = {"gpt", "bert"};

std::vector<std::string> read_sources(config::Object& document) {
    std::vector<std::string> sources;
    const auto node = document.node("source");
    if (!node) return sources;
    for (const auto& item : node->is_sequence() ? node->items() : std::vector<Node>{*node}) {
        if (!item.is_scalar()) document.diagnostics().error(item.where(), "source: wants a text, or a list of texts");
        sources.push_back(item.text());
    }
    return sources;
}

template <class Read, class Build>
Model read_family(const Node& sizes, const std::string& name, config::Diagnostics& diagnostics, Read read,
                  Build build) {
    const std::size_t errors_before = diagnostics.count();
    const Transformer transformer = read(sizes, diagnostics);
    if (diagnostics.count() != errors_before) return {};
    try {
        return build(name, transformer);
    } catch (const InputError& error) {
        diagnostics.error(sizes.where(), error.what());
        return {};
    }
}

Model read_body(config::Object& document, const std::string& name) {
    const auto gpt = document.node("gpt");
    const auto bert = document.node("bert");
    const bool is_dag = document.has("layers") || document.has("input") || document.has("inputs");
    if (static_cast<int>(gpt.has_value()) + static_cast<int>(bert.has_value()) + static_cast<int>(is_dag) != 1) {
        document.error("layers", "a model is described by one of: input and layers, gpt: {...}, or bert: {...}");
        for (auto key : {"layers", "input", "inputs", "blocks"}) document.node(key);
        return {};
    }
    if (gpt) return read_family(*gpt, name, document.diagnostics(), read_gpt, build_gpt);
    if (bert) return read_family(*bert, name, document.diagnostics(), read_bert, build_bert);
    return read_dag(document, name);
}

/// The family key of a document that has one ("gpt", "bert"), else "".
std::string_view family_of(const Node& document) {
    for (auto family : families)
        if (document.find(family) != nullptr) return family;
    return "";
}

/// "layers=2", "lora.rank=16": a change each.
void add_changes(const std::string& key, const Node& value, std::vector<std::string>& changes) {
    if (!value.is_mapping())
        changes.push_back(fmt::format("{}={}", key, value.is_scalar() ? value.text() : value.canonical()));
    for (const auto& entry : value.entries()) add_changes(fmt::format("{}.{}", key, entry.key), entry.value, changes);
}

std::string overridden_name(const std::string& base, const Node& overrides) {
    std::vector<std::string> changes;
    for (const auto& entry : overrides.entries())
        if (entry.key != "base" && entry.key != "name") add_changes(entry.key, entry.value, changes);
    std::sort(changes.begin(), changes.end());
    return changes.empty() ? base : fmt::format("{}[{}]", base, fmt::join(changes, ","));
}

/// The base document with the overrides put into its family's mapping. Throws InputError when the base can't be read.
Node override_document(const config::DataPath& data, const Node& node, config::Diagnostics& diagnostics) {
    const Node* base = node.find("base");
    if (base == nullptr)
        throw InputError("a model as a mapping needs base: NAME, such as {base: gpt-small, layers: 24}");
    const auto path = data.find("model", "models", base->text());
    Node document = config::parse_file(path);
    const std::string_view family = family_of(document);
    std::vector<std::string> keys;
    for (const auto& entry : node.entries()) {
        if (entry.key == "base" || entry.key == "name") continue;
        keys.push_back(entry.key);
        if (!family.empty()) document = document.with(fmt::format("{}.{}", family, entry.key), entry.value);
    }
    if (family.empty() && !keys.empty())
        diagnostics.error(node.where(),
                          fmt::format("model '{}' is written layer by layer and has no '{}' to set; only gpt "
                                      "and bert models take sizes",
                                      base->text(), fmt::join(keys, "', '")));
    const Node* name = node.find("name");
    const Node* base_name = document.find("name");
    const std::string old_name = base_name != nullptr ? base_name->text() : path.stem().string();
    const std::string new_name = name != nullptr ? name->text() : overridden_name(old_name, node);
    return document.with("name", Node::make_scalar(new_name, node.where()));
}

}  // namespace

Model read_model(const Node& document, config::Diagnostics& diagnostics) {
    config::Object object(document, "model", diagnostics);
    const std::filesystem::path file = document.where().file;
    const std::string name = object.text_or("name", file.stem().string());
    std::vector<std::string> sources = read_sources(object);
    Model model = read_body(object, name);
    object.finish();
    model.name = name;
    model.sources = std::move(sources);
    model.file = file;
    return model;
}

Model load_model(const config::DataPath& data, std::string_view name_or_path) {
    config::Diagnostics diagnostics;
    Model model = read_model(config::parse_file(data.find("model", "models", name_or_path)), diagnostics);
    diagnostics.throw_if_any();
    return model;
}

Model load_model(const config::DataPath& data, const Node& node, config::Diagnostics& diagnostics) {
    try {
        if (node.is_mapping()) return read_model(override_document(data, node, diagnostics), diagnostics);
        if (!node.is_scalar()) throw InputError("wants the name of a model, a path, or {base: NAME, ...}");
        return read_model(config::parse_file(data.find("model", "models", node.text())), diagnostics);
    } catch (const InputError& error) {
        diagnostics.error(node.where(), error.what());
        return {};
    }
}

std::vector<std::string> model_names(const config::DataPath& data) { return data.names("models"); }

}  // namespace lockstep::model
