#include "model/dag_reader.hpp"

#include <fmt/format.h>

#include <set>

#include "base/error.hpp"
#include "model/block_expansion.hpp"
#include "model/builder.hpp"
#include "model/layer_order.hpp"
#include "model/limits.hpp"
#include "model/op_reader.hpp"

namespace lockstep::model {

namespace {

using config::Node;

Input read_input(const std::string& name, const Node& node, config::Diagnostics& diagnostics) {
    Input input;
    input.name = name;
    if (node.is_sequence()) {
        const Node wrapped = Node::make_mapping({{name, node.where(), node}}, node.where());
        config::Object object(wrapped, "model", diagnostics);
        input.shape = Shape(object.integers(name));
        for (auto extent : input.shape.extents)
            if (extent < 1 || extent > max_extent)
                diagnostics.error(node.where(), fmt::format("{}: sizes must be from 1 to {}, got {}", name, max_extent,
                                                            to_string(input.shape)));
        if (input.shape.rank() == 0) diagnostics.error(node.where(), fmt::format("{}: is empty", name));
        return input;
    }
    config::Object object(node, fmt::format("input '{}'", name), diagnostics);
    input.kind = Input::Kind::tokens;
    input.shape = {object.integer("tokens", 1, max_extent)};
    input.vocab = object.integer("vocab", 1, max_extent);
    object.finish();
    return input;
}

std::vector<Input> read_inputs(config::Object& document) {
    std::vector<Input> inputs;
    if (const auto one = document.node("input")) inputs.push_back(read_input("input", *one, document.diagnostics()));
    if (const auto several = document.node("inputs")) {
        if (!inputs.empty()) document.error("inputs", "a model has either input or inputs; remove one");
        if (!several->is_mapping())
            document.error("inputs", "wants names with their shapes, such as {image: [3, 8, 8]}");
        for (const auto& entry : several->entries())
            inputs.push_back(read_input(entry.key, entry.value, document.diagnostics()));
    }
    if (inputs.empty())
        document.error("input",
                       "the model has no input; write input: [channels, height, width] or {tokens: , vocab: }");
    return inputs;
}

/// Builds the layers in order; a layer behind a broken one is left out without another error.
class DagBuild {
public:
    DagBuild(const FlatModel& flat, const LinkedModel& linked, ModelBuilder& builder, config::Diagnostics& diagnostics)
        : flat_(flat), linked_(linked), builder_(builder), diagnostics_(diagnostics), ids_(flat.layers.size()) {}

    void build() {
        for (int i : linked_.order) build_one(static_cast<std::size_t>(i));
    }

private:
    void build_one(std::size_t i) {
        const FlatLayer& layer = flat_.layers[i];
        const LinkedLayer& linked = linked_.layers[i];
        const std::pair<int, int> place{layer.node.where().line, layer.node.where().column};
        if (!layer.readable || !linked.is_complete || failed_.contains(place)) return;
        std::vector<Feed> feeds;
        std::vector<Source> sources;
        for (int feed : linked.feeds) {
            if (feed >= 0 && !ids_[static_cast<std::size_t>(feed)].is_valid()) return;
            feeds.push_back(feed < 0 ? Feed::from_input(-1 - feed) : Feed{ids_[static_cast<std::size_t>(feed)]});
            sources.push_back(builder_.source(feeds.back()));
        }
        try {
            config::Object object(layer.node, fmt::format("layer '{}'", layer.name), diagnostics_);
            for (auto key : {"name", "in", "repeat", "first", "tied_to"}) object.node(key);
            auto op = read_op(object, sources);
            if (op && tie(linked, layer, *op)) {
                op->options.repeat_group = layer.repeat_group;
                ids_[i] = builder_.add(layer.name, std::move(op->kind), feeds, op->options);
                return;
            }
        } catch (const InputError& error) { diagnostics_.error(layer.node.where(), error.what()); }
        failed_.insert(place);
    }

    bool tie(const LinkedLayer& linked, const FlatLayer& layer, ReadOp& op) {
        if (linked.tied_to < 0) return true;
        const LayerId other = ids_[static_cast<std::size_t>(linked.tied_to)];
        if (!other.is_valid()) return false;
        const auto& owner = builder_.model().layer(other);
        if (owner.parameters.empty() || parameters_of("", op.kind).empty()) {
            const bool is_owner = owner.parameters.empty();
            diagnostics_.error(layer.node.find("tied_to")->where(),
                               fmt::format("layer '{}': tied_to: {} has no weight (it is a {})", layer.name,
                                           is_owner ? "'" + owner.name + "'" : "the layer itself",
                                           kind_name(is_owner ? owner.kind : op.kind)));
            return false;
        }
        op.options.tied_weight = owner.parameters.front();
        return true;
    }

    const FlatModel& flat_;
    const LinkedModel& linked_;
    ModelBuilder& builder_;
    config::Diagnostics& diagnostics_;
    std::vector<LayerId> ids_;
    std::set<std::pair<int, int>> failed_;  ///< layers as written, so that a block used often reports an error once
};

}  // namespace

Model read_dag(config::Object& document, const std::string& name) {
    config::Diagnostics& diagnostics = document.diagnostics();
    ModelBuilder builder(name);
    std::vector<std::string> input_names;
    const bool reads_tokens = [&] {
        bool tokens = false;
        for (auto& input : read_inputs(document)) {
            tokens = tokens || input.kind == Input::Kind::tokens;
            input_names.push_back(input.name);
            builder.add_input(std::move(input));
        }
        return tokens;
    }();
    const Node blocks = document.node("blocks").value_or(Node{});
    if (!blocks.is_null() && !blocks.is_mapping()) document.error("blocks", "wants names with {parameters, layers}");
    const Node layers = document.node("layers").value_or(Node{});
    if (input_names.empty()) return builder.take();

    const FlatModel flat = expand_blocks(layers, blocks, input_names, diagnostics);
    if (flat.is_cut) return builder.take();
    const LinkedModel linked = link_layers(flat, input_names, layers.where(), diagnostics);
    DagBuild(flat, linked, builder, diagnostics).build();
    Model model = builder.take();
    model.sample_unit = reads_tokens ? "sequences" : "images";
    return model;
}

}  // namespace lockstep::model
