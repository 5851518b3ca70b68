#include "model/first_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"

namespace lockstep::model {

namespace {

/// Where each layer stands: which block, counted from 0, and its place in it.
struct Place {
    int block = -1;
    std::size_t position = 0;
};

struct Blocks {
    std::vector<Place> place_of;               ///< by layer
    std::vector<std::vector<LayerId>> layers;  ///< by block
};

Blocks find_blocks(const Model& model) {
    Blocks blocks;
    std::map<int, int> numbers;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const int group = model.layers[i].repeat_group;
        if (group < 0) {
            blocks.place_of.emplace_back();
            continue;
        }
        const int block = numbers.emplace(group, static_cast<int>(numbers.size())).first->second;
        if (static_cast<std::size_t>(block) == blocks.layers.size()) blocks.layers.emplace_back();
        auto& members = blocks.layers[static_cast<std::size_t>(block)];
        blocks.place_of.push_back({block, members.size()});
        members.push_back({static_cast<std::int32_t>(i)});
    }
    return blocks;
}

bool are_parameters_alike(const Model& model, const Layer& a, const Layer& b) {
    return std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(),
                      [&](ParameterId x, ParameterId y) {
                          const Parameter& p = model.parameters[x.index()];
                          const Parameter& q = model.parameters[y.index()];
                          return p.shape == q.shape && p.trainable == q.trainable && p.role == q.role;
                      });
}

/// Whether an input of a layer of block `block` means the same as one of the block after it.
bool are_inputs_alike(const Blocks& blocks, LayerId a, LayerId b, int block) {
    if (!a.is_valid() || !b.is_valid()) return a.is_valid() == b.is_valid();
    const Place x = blocks.place_of[a.index()], y = blocks.place_of[b.index()];
    if (y.block == block + 1) return x.block == block && x.position == y.position;
    if (y.block == block) return block == 0 ? x.block < 0 : x.block == block - 1 && x.position == y.position;
    return y.block < 0 && a == b;
}

bool are_layers_alike(const Model& model, const Blocks& blocks, const Layer& a, const Layer& b, int block) {
    return a.kind == b.kind && a.input == b.input && a.output == b.output && a.model_input == b.model_input &&
           are_parameters_alike(model, a, b) &&
           std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                      [&](LayerId x, LayerId y) { return are_inputs_alike(blocks, x, y, block); });
}

bool are_blocks_alike(const Model& model, const Blocks& blocks, int block) {
    const auto& a = blocks.layers[static_cast<std::size_t>(block)];
    const auto& b = blocks.layers[static_cast<std::size_t>(block) + 1];
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](LayerId x, LayerId y) {
        return are_layers_alike(model, blocks, model.layer(x), model.layer(y), block);
    });
}

/// Block by block the parameters must be its own.
bool share_parameters(const Model& model, const Blocks& blocks) {
    std::map<ParameterId, int> owner;
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        for (const ParameterId id : model.layers[i].parameters) {
            const auto [known, is_new] = owner.emplace(id, blocks.place_of[i].block);
            if (!is_new && known->second != blocks.place_of[i].block) return true;
        }
    return false;
}

}  // namespace

std::string why_blocks_differ(const Model& model) {
    const Blocks blocks = find_blocks(model);
    const int count = static_cast<int>(blocks.layers.size());
    if (count < 2) return fmt::format("the model has {} block{}", count, count == 1 ? "" : "s");
    for (int block = 0; block + 1 < count; ++block)
        if (!are_blocks_alike(model, blocks, block))
            return fmt::format("blocks {} and {} of the model are not alike", block, block + 1);
    if (share_parameters(model, blocks)) return "blocks of the model share parameters";
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        for (const LayerId from : model.layers[i].inputs) {
            const int source = from.is_valid() ? blocks.place_of[from.index()].block : -1;
            if (blocks.place_of[i].block < 0 && source >= 0 && source != count - 1)
                return fmt::format("layer {} reads a block in the middle", model.layers[i].name);
        }
    return "";
}

Model with_first_blocks(const Model& model, int blocks) {
    const Blocks all = find_blocks(model);
    const int count = static_cast<int>(all.layers.size());
    if (blocks < 1 || blocks > count || !why_blocks_differ(model).empty())
        throw LogicError(fmt::format("{} of {} blocks that may not be alike", blocks, count));
    Model cut = model;
    cut.layers.clear();
    cut.parameters.clear();
    std::vector<LayerId> new_layer(model.layers.size());
    std::map<ParameterId, ParameterId> new_parameter;
    const auto moved = [&](LayerId id) {
        if (!id.is_valid()) return id;
        const Place place = all.place_of[id.index()];
        if (place.block < blocks) return new_layer[id.index()];
        return new_layer[all.layers[static_cast<std::size_t>(blocks) - 1][place.position].index()];
    };
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        if (all.place_of[i].block >= blocks) continue;
        Layer layer = model.layers[i];
        for (LayerId& id : layer.inputs) id = moved(id);
        layer.dispatch = moved(layer.dispatch);
        for (ParameterId& id : layer.parameters) {
            const auto [known, is_new] =
                new_parameter.emplace(id, ParameterId{static_cast<std::int32_t>(cut.parameters.size())});
            if (is_new) cut.parameters.push_back(model.parameters[id.index()]);
            id = known->second;
        }
        new_layer[i] = {static_cast<std::int32_t>(cut.layers.size())};
        cut.layers.push_back(std::move(layer));
    }
    return cut;
}

}  // namespace lockstep::model
