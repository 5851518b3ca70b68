#include "model/layer_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

namespace lockstep::model {

namespace {

bool is_loss(const FlatLayer& layer) {
    const config::Node* op = layer.node.find("op");
    return op != nullptr && op->text() == "softmax_loss";
}

class Linker {
public:
    Linker(const FlatModel& flat, const std::vector<std::string>& inputs, config::Diagnostics& diagnostics)
        : flat_(flat), inputs_(inputs), diagnostics_(diagnostics), input_is_used_(inputs.size(), false) {
        for (std::size_t i = 0; i < inputs.size(); ++i) index_[inputs[i]] = -1 - static_cast<int>(i);
        for (std::size_t i = 0; i < flat.layers.size(); ++i) index_.emplace(flat.layers[i].name, static_cast<int>(i));
        users_.resize(flat.layers.size());
        waits_.resize(flat.layers.size(), 0);
        is_used_.resize(flat.layers.size(), false);
    }

    LinkedModel link(const config::Location& where) {
        LinkedModel linked;
        for (std::size_t i = 0; i < flat_.layers.size(); ++i) linked.layers.push_back(link_layer(static_cast<int>(i)));
        sort(linked);
        if (linked.order.size() != flat_.layers.size()) report_cycle(linked);
        if (has_unknown_) return linked;  // what looks unused may be what the unknown name meant
        report_losses(where);
        const bool is_whole = std::all_of(flat_.layers.begin(), flat_.layers.end(), [](auto& l) { return l.readable; });
        if (is_whole) report_unused(where);
        return linked;
    }

private:
    LinkedLayer link_layer(int i) {
        const FlatLayer& layer = flat_.layers[static_cast<std::size_t>(i)];
        LinkedLayer linked;
        for (const auto& name : layer.inputs) {
            const int* const found = find(name);
            if (found == nullptr) {
                linked.is_complete = false;
                if (!name.empty()) report_unknown(layer, "in", name);
                continue;
            }
            linked.feeds.push_back(*found);
            if (*found < 0)
                input_is_used_[static_cast<std::size_t>(-1 - *found)] = true;
            else {
                is_used_[static_cast<std::size_t>(*found)] = true;
                add_edge(*found, i);
            }
        }
        if (!layer.tied_to.empty()) {
            const int* const found = find(layer.tied_to);
            if (found == nullptr || *found < 0) {
                linked.is_complete = false;
                report_unknown(layer, "tied_to", layer.tied_to);
            } else {
                linked.tied_to = *found;
                add_edge(*found, i);
            }
        }
        return linked;
    }

    const int* find(std::string name) const {
        for (auto alias = flat_.outputs.find(name); alias != flat_.outputs.end(); alias = flat_.outputs.find(name)) {
            if (alias->second == name) return nullptr;
            name = alias->second;
        }
        const auto place = index_.find(name);
        return place == index_.end() ? nullptr : &place->second;
    }

    void add_edge(int from, int to) {
        users_[static_cast<std::size_t>(from)].push_back(to);
        ++waits_[static_cast<std::size_t>(to)];
    }

    void report_unknown(const FlatLayer& layer, std::string_view key, const std::string& name) {
        has_unknown_ = true;
        constexpr std::size_t enough = 2000;  // names to compare with
        std::vector<std::string> known = inputs_;
        for (const auto& other : flat_.layers)
            if (known.size() < enough) known.push_back(other.name);
        const config::Node* node = layer.node.find(key);
        diagnostics_.error(node != nullptr ? node->where() : layer.node.where(),
                           fmt::format("layer '{}': {}: unknown layer '{}'{}", layer.name, key, name,
                                       config::did_you_mean(name, known)));
    }

    /// Kahn's algorithm; of the layers that are ready, the first in the file goes next.
    void sort(LinkedModel& linked) {
        std::vector<int> waits = waits_;
        std::priority_queue<int, std::vector<int>, std::greater<>> ready;
        for (std::size_t i = 0; i < waits.size(); ++i)
            if (waits[i] == 0) ready.push(static_cast<int>(i));
        while (!ready.empty()) {
            const int next = ready.top();
            ready.pop();
            linked.order.push_back(next);
            for (int user : users_[static_cast<std::size_t>(next)])
                if (--waits[static_cast<std::size_t>(user)] == 0) ready.push(user);
        }
    }

    void report_cycle(const LinkedModel& linked) {
        std::vector<bool> is_sorted(flat_.layers.size(), false);
        for (int i : linked.order) is_sorted[static_cast<std::size_t>(i)] = true;
        // A layer that was not sorted waits for another one: going back long enough runs in a circle.
        int at = static_cast<int>(std::find(is_sorted.begin(), is_sorted.end(), false) - is_sorted.begin());
        std::vector<int> path;
        std::vector<int> position(flat_.layers.size(), -1);
        while (position[static_cast<std::size_t>(at)] < 0) {
            position[static_cast<std::size_t>(at)] = static_cast<int>(path.size());
            path.push_back(at);
            const LinkedLayer& layer = linked.layers[static_cast<std::size_t>(at)];
            std::vector<int> before = layer.feeds;
            before.push_back(layer.tied_to);
            at = *std::find_if(before.begin(), before.end(),
                               [&](int i) { return i >= 0 && !is_sorted[static_cast<std::size_t>(i)]; });
        }
        std::vector<int> cycle(path.begin() + position[static_cast<std::size_t>(at)], path.end());
        std::reverse(cycle.begin(), cycle.end());
        std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
        cycle.push_back(cycle.front());
        std::vector<std::string> names;
        for (int i : cycle) names.push_back("'" + flat_.layers[static_cast<std::size_t>(i)].name + "'");
        if (names.size() > 12) names.erase(names.begin() + 6, names.end() - 5), names.insert(names.begin() + 6, "...");
        diagnostics_.error(flat_.layers[static_cast<std::size_t>(cycle.front())].node.where(),
                           fmt::format("layers form a cycle ({}); a layer can only use what comes before it",
                                       fmt::join(names, " -> ")));
    }

    void report_losses(const config::Location& where) {
        const FlatLayer* first = nullptr;
        for (const auto& layer : flat_.layers) {
            if (!is_loss(layer)) continue;
            if (first != nullptr)
                diagnostics_.error(layer.node.where(), fmt::format("'{}' is a second loss beside '{}'; a model has one",
                                                                   layer.name, first->name));
            else
                first = &layer;
        }
        has_loss_ = first != nullptr;
        if (!has_loss_) diagnostics_.error(where, "the model has no loss; end it with a layer {op: softmax_loss}");
    }

    void report_unused(const config::Location& where) {
        for (std::size_t i = 0; i < flat_.layers.size(); ++i) {
            const FlatLayer& layer = flat_.layers[i];
            const bool misses_its_loss = !has_loss_ && i + 1 == flat_.layers.size();
            if (!is_used_[i] && !is_loss(layer) && !misses_its_loss)
                diagnostics_.error(
                    layer.node.where(),
                    fmt::format("nothing uses layer '{}'; use it as an input, or remove it", layer.name));
        }
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            if (!input_is_used_[i])
                diagnostics_.error(where,
                                   fmt::format("nothing uses the model's input '{}'; name it under in:", inputs_[i]));
    }

    const FlatModel& flat_;
    const std::vector<std::string>& inputs_;
    config::Diagnostics& diagnostics_;
    std::unordered_map<std::string, int> index_;
    std::vector<std::vector<int>> users_;
    std::vector<int> waits_;
    std::vector<bool> input_is_used_;
    std::vector<bool> is_used_;  ///< its output feeds a layer (a tied weight alone is no use)
    bool has_unknown_ = false;
    bool has_loss_ = false;
};

}  // namespace

LinkedModel link_layers(const FlatModel& flat, const std::vector<std::string>& inputs, const config::Location& where,
                        config::Diagnostics& diagnostics) {
    return Linker(flat, inputs, diagnostics).link(where);
}

}  // namespace lockstep::model
