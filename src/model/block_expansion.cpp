#include "model/block_expansion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/block_parameters.hpp"
#include "model/limits.hpp"

namespace lockstep::model {

namespace {

using config::Node;

constexpr std::size_t max_nesting = 32;

/// Where a list of layers stands: at the top, or in one use of a block.
struct Scope {
    std::string prefix;
    std::string input;  ///< full name of what comes in; "" where a model has several inputs
    const BlockValues* values = nullptr;
    int group = -1;
    std::vector<std::string> inside;  ///< names of the blocks around, outermost first
};

class Expansion {
public:
    Expansion(const Node& blocks, const std::vector<std::string>& inputs, config::Diagnostics& diagnostics)
        : blocks_(blocks), inputs_(inputs), names_(inputs.begin(), inputs.end()), diagnostics_(diagnostics) {}

    /// Returns the full name of what leaves the list.
    std::string expand(const Node& list, const Scope& scope);
    FlatModel take() { return std::move(flat_); }

private:
    struct Use {
        std::string local_name;
        std::vector<std::string> inputs;
        std::int64_t repeat = 1, first = 0;
        bool is_repeated = false;
    };
    Use read_use(const Node& entry, std::size_t ordinal, const Scope& scope, const std::string& before);
    std::vector<std::string> read_inputs(const Node& entry, const Scope& scope, const std::string& before);
    std::string resolve(const std::string& reference, const Scope& scope) const;
    void add_one(const Node& entry, const std::string& name, const std::vector<std::string>& inputs,
                 const Scope& scope);
    void add_block(const Node& entry, const std::string& name, const std::vector<std::string>& inputs,
                   const Scope& scope);
    void claim(const std::string& name, const config::Location& where);
    bool is_full(const config::Location& where);
    bool was_reported(const Node& entry) const { return reported_.contains(place(entry)); }
    static std::pair<int, int> place(const Node& node) { return {node.where().line, node.where().column}; }

    Node blocks_;
    std::vector<std::string> inputs_;
    std::set<std::string> names_;
    std::set<std::pair<int, int>> reported_;  ///< entries with an error: a block used often reports it once
    config::Diagnostics& diagnostics_;
    FlatModel flat_;
    int next_group_ = 0;
    bool full_ = false;
};

std::string Expansion::expand(const Node& list, const Scope& scope) {
    std::string before = scope.input;
    if (!list.is_sequence() || list.items().empty()) {
        if (reported_.insert(place(list)).second)
            diagnostics_.error(list.where(), "layers must be a list of at least one layer, such as [{op: relu}]");
        return before;
    }
    for (std::size_t i = 0; i < list.items().size() && !full_; ++i) {
        const Node& written = list.items()[i];
        const std::size_t errors_before = diagnostics_.count();
        const Node entry = scope.values == nullptr || was_reported(written)
                               ? written
                               : fill_parameters(written, *scope.values, diagnostics_);
        if (!entry.is_mapping()) {
            if (!was_reported(written))
                diagnostics_.error(written.where(), "a layer must be a mapping, such as {op: relu}");
            reported_.insert(place(written));
            continue;
        }
        const Use use = read_use(entry, i + 1, scope, before);
        if (diagnostics_.count() != errors_before) reported_.insert(place(written));
        std::vector<std::string> inputs = use.inputs;
        before = scope.prefix + use.local_name;
        if (use.is_repeated) claim(before, entry.where());
        for (std::int64_t k = 0; k < use.repeat && !is_full(entry.where()); ++k) {
            const std::string name = use.is_repeated ? fmt::format("{}.{}", before, use.first + k) : before;
            add_one(entry, name, inputs, scope);
            inputs = {name};
        }
        if (use.is_repeated && !full_) flat_.outputs[before] = inputs.front();
    }
    return before;
}

Expansion::Use Expansion::read_use(const Node& entry, std::size_t ordinal, const Scope& scope,
                                   const std::string& before) {
    config::Diagnostics unused;  // a second look at an entry with errors says nothing new
    config::Object object(entry, "layer", was_reported(entry) ? unused : diagnostics_);
    Use use;
    const bool is_block = object.has("block");
    if (is_block && object.has("op")) object.error("op", "a layer has either op or block; remove one");
    if (!is_block && !object.has("op")) object.error("op", "a layer needs op: NAME or block: NAME");
    const std::string kind = is_block ? object.text_or("block", "block") : object.text_or("op", "layer");
    use.local_name = object.text_or("name", fmt::format("{}_{}", kind, ordinal));
    if (use.local_name.empty() || use.local_name == "input")
        object.error("name", fmt::format("a layer can't be named '{}'; choose another name", use.local_name));
    use.is_repeated = object.has("repeat");
    use.repeat = object.integer_or("repeat", 1, 1, max_layers);
    use.first = object.integer_or("first", 0, 0, max_layers);
    use.inputs = read_inputs(entry, scope, before);
    return use;
}

std::vector<std::string> Expansion::read_inputs(const Node& entry, const Scope& scope, const std::string& before) {
    const Node* in = entry.find("in");
    if (in == nullptr) {
        if (before.empty() && !was_reported(entry))
            diagnostics_.error(entry.where(), fmt::format("the first layer needs in: (the model has {} inputs: {})",
                                                          inputs_.size(), fmt::join(inputs_, ", ")));
        return {before};
    }
    std::vector<std::string> inputs;
    for (const auto& item : in->is_sequence() ? in->items() : std::vector<Node>{*in}) {
        if ((!item.is_scalar() || item.text().empty()) && !was_reported(entry))
            diagnostics_.error(item.where(), "in: wants the name of a layer, or a list of names");
        inputs.push_back(resolve(item.text(), scope));
    }
    if (inputs.empty()) {
        if (!was_reported(entry)) diagnostics_.error(in->where(), "in: is empty; name a layer, or remove it");
        inputs.push_back(before);
    }
    return inputs;
}

std::string Expansion::resolve(const std::string& reference, const Scope& scope) const {
    if (reference.starts_with('/')) return reference.substr(1);
    if (!scope.prefix.empty() && reference == "input") return scope.input;
    return scope.prefix + reference;
}

void Expansion::add_one(const Node& entry, const std::string& name, const std::vector<std::string>& inputs,
                        const Scope& scope) {
    claim(name, entry.where());
    if (entry.find("block") != nullptr) return add_block(entry, name, inputs, scope);
    FlatLayer layer{.name = name, .node = entry, .inputs = inputs, .tied_to = "", .repeat_group = scope.group};
    layer.readable = !was_reported(entry);
    if (const Node* tied = entry.find("tied_to")) layer.tied_to = resolve(tied->text(), scope);
    flat_.layers.push_back(std::move(layer));
}

void Expansion::add_block(const Node& entry, const std::string& name, const std::vector<std::string>& inputs,
                          const Scope& scope) {
    auto give_up = [&] {  // something must carry the name, so that what follows doesn't complain about it
        reported_.insert(place(entry));
        flat_.layers.push_back({.name = name, .node = entry, .inputs = {}, .tied_to = "", .readable = false});
    };
    if (was_reported(entry)) return give_up();
    const std::size_t errors_before = diagnostics_.count();
    config::Object object(entry, fmt::format("block use '{}'", name), diagnostics_);
    for (auto key : {"name", "in", "repeat", "first"}) object.node(key);
    const std::string block_name = object.text("block");
    const Node with = object.node("with").value_or(Node{});
    object.finish();
    if (!with.is_null() && !with.is_mapping()) object.error("with", "wants a mapping of the block's parameters");
    const Node* block = blocks_.find(block_name);
    std::vector<std::string> known;
    for (const auto& candidate : blocks_.entries()) known.push_back(candidate.key);
    if (block == nullptr)
        object.error("block", fmt::format("unknown block '{}'{}", block_name, config::did_you_mean(block_name, known)));
    if (inputs.size() != 1) object.error("in", fmt::format("a block has one input, got {}", inputs.size()));
    if (std::find(scope.inside.begin(), scope.inside.end(), block_name) != scope.inside.end())
        object.error("block", fmt::format("block '{}' contains itself ({} -> {})", block_name,
                                          fmt::join(scope.inside, " -> "), block_name));
    if (scope.inside.size() >= max_nesting)
        object.error("block", fmt::format("blocks are nested more than {} deep", max_nesting));
    if (diagnostics_.count() != errors_before) return give_up();

    config::Object body(*block, fmt::format("block '{}'", block_name), diagnostics_);
    const Node parameters = body.node("parameters").value_or(Node{});
    const Node layers = body.node("layers").value_or(Node{});
    const BlockValues values = bind_parameters(block_name, parameters, with, entry.where(), diagnostics_);
    body.finish();
    if (diagnostics_.count() != errors_before || layers.is_null()) {
        if (layers.is_null()) body.error("layers", fmt::format("block '{}' has no layers", block_name));
        return give_up();
    }
    Scope inner{
        .prefix = name + ".", .input = inputs.front(), .values = &values, .group = scope.group, .inside = scope.inside};
    inner.inside.push_back(block_name);
    if (scope.prefix.empty()) inner.group = next_group_++;
    flat_.outputs[name] = expand(layers, inner);
}

void Expansion::claim(const std::string& name, const config::Location& where) {
    if (!names_.insert(name).second)
        diagnostics_.error(where, fmt::format("the name '{}' is used twice; give one of them another name", name));
}

bool Expansion::is_full(const config::Location& where) {
    if (full_ || static_cast<std::int64_t>(flat_.layers.size()) < max_layers) return full_;
    diagnostics_.error(where, fmt::format("more than {} layers; use a smaller model", max_layers));
    return full_ = flat_.is_cut = true;
}

}  // namespace

FlatModel expand_blocks(const Node& layers, const Node& blocks, const std::vector<std::string>& inputs,
                        config::Diagnostics& diagnostics) {
    Expansion expansion(blocks, inputs, diagnostics);
    Scope top;
    if (inputs.size() == 1) top.input = inputs.front();
    expansion.expand(layers, top);
    return expansion.take();
}

}  // namespace lockstep::model
