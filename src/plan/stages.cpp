#include "plan/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "plan/nearby.hpp"

namespace lockstep::plan {

namespace {

/// Each block's number, blocks counted in the order in which the model comes to them.
std::map<int, int> number_of_block(const model::Model& model) {
    std::map<int, int> numbers;
    for (const model::Layer& layer : model.layers)
        if (layer.repeat_group >= 0) numbers.emplace(layer.repeat_group, static_cast<int>(numbers.size()));
    return numbers;
}

/// The most even split; the ends, which have embedding and loss besides, get the smaller counts.
std::vector<int> proposed_blocks(int blocks, int chunks) {
    std::vector<int> counts(static_cast<std::size_t>(chunks), blocks / chunks);
    const int more = blocks % chunks;
    const int first = (chunks - more) / 2;
    for (int i = first; i < first + more; ++i) ++counts[static_cast<std::size_t>(i)];
    return counts;
}

[[noreturn]] void refuse_unequal(int blocks, const Plan& plan) {
    const int chunks = plan.chunks();
    std::vector<std::int64_t> fitting;  // values of pp with equal chunks
    for (const std::int64_t d : divisors(blocks))
        if (d % plan.split.vpp == 0) fitting.push_back(d / plan.split.vpp);
    const std::string use_pp =
        fitting.empty() ? "" : fmt::format("use pp={} (vpp={}), or ", either(fitting), plan.split.vpp);
    if (blocks < chunks)
        throw InputError(fmt::format("pp={} x vpp={} = {} chunks are more than the model's {} blocks; {}fewer chunks",
                                     plan.mesh.pp, plan.split.vpp, chunks, blocks, use_pp));
    throw InputError(fmt::format("{} blocks don't divide into pp={} x vpp={} = {} equal chunks; {}stage_blocks: [{}]",
                                 blocks, plan.mesh.pp, plan.split.vpp, chunks, use_pp,
                                 fmt::join(proposed_blocks(blocks, chunks), ", ")));
}

void check_given(const std::vector<int>& given, int blocks, const Plan& plan) {
    const int chunks = plan.chunks();
    const std::string proposal = fmt::format("{}", fmt::join(proposed_blocks(blocks, chunks), ", "));
    if (static_cast<int>(given.size()) != chunks)
        throw InputError(fmt::format("stage_blocks has {} counts for pp={} x vpp={} = {} chunks; use [{}]",
                                     given.size(), plan.mesh.pp, plan.split.vpp, chunks, proposal));
    const auto sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
    if (std::ranges::any_of(given, [](int count) { return count < 0; }) || sum != blocks)
        throw InputError(
            fmt::format("stage_blocks has {} blocks together, and the model has {}; use [{}]", sum, blocks, proposal));
}

std::string name_of(const model::Model& model, int producer) {
    if (producer < 0) return fmt::format("input '{}'", model.inputs[static_cast<std::size_t>(-1 - producer)].name);
    return fmt::format("'{}'", model.layers[static_cast<std::size_t>(producer)].name);
}

/// What crosses each border between chunks: layers, or -1 - k for model input k.
std::vector<std::set<int>> crossings(const model::Model& model, const std::vector<int>& chunks, int count,
                                     std::vector<std::string>& refusals) {
    std::vector<std::set<int>> crossing(static_cast<std::size_t>(count - 1));
    for (std::size_t i = 0; i < model.layers.size(); ++i)
        for (const model::LayerId from : model.layers[i].inputs) {
            const int producer = from.is_valid() ? from.value : -1 - model.layers[i].model_input;
            const int source = from.is_valid() ? chunks[from.index()] : 0;
            if (source > chunks[i])
                refusals.push_back(
                    fmt::format("layer '{}' of chunk {} reads '{}' of the later chunk {} (blocks side by "
                                "side can't be pipelined); use pp=1",
                                model.layers[i].name, chunks[i], model.layer(from).name, source));
            for (int border = source; border < chunks[i]; ++border)
                crossing[static_cast<std::size_t>(border)].insert(producer);
        }
    return crossing;
}

}  // namespace

int block_count(const model::Model& model) { return static_cast<int>(number_of_block(model).size()); }

std::vector<int> blocks_of_chunks(int blocks, const Plan& plan) {
    const int chunks = plan.chunks();
    if (!plan.split.stage_blocks.empty()) {
        check_given(plan.split.stage_blocks, blocks, plan);
        return plan.split.stage_blocks;
    }
    if (blocks == 0 && chunks > 1)
        throw InputError(
            fmt::format("pp={} wants blocks to cut between, and the model has none; use pp=1", plan.mesh.pp));
    if (blocks % chunks != 0) refuse_unequal(blocks, plan);
    return std::vector<int>(static_cast<std::size_t>(chunks), blocks / chunks);
}

std::vector<int> chunk_of_layer(const model::Model& model, const Plan& plan) {
    const std::map<int, int> numbers = number_of_block(model);
    const int blocks = static_cast<int>(numbers.size());
    std::vector<int> chunk_of_block;
    const std::vector<int> counts = blocks_of_chunks(blocks, plan);
    for (std::size_t chunk = 0; chunk < counts.size(); ++chunk)
        chunk_of_block.insert(chunk_of_block.end(), static_cast<std::size_t>(counts[chunk]), static_cast<int>(chunk));

    std::vector<int> chunks;
    chunks.reserve(model.layers.size());
    int latest = -1;  // block
    for (const model::Layer& layer : model.layers) {
        if (layer.repeat_group >= 0) {
            const int block = numbers.at(layer.repeat_group);
            latest = std::max(latest, block);
            chunks.push_back(chunk_of_block[static_cast<std::size_t>(block)]);
        } else if (latest < 0) {
            chunks.push_back(0);
        } else {
            chunks.push_back(latest == blocks - 1 ? plan.chunks() - 1
                                                  : chunk_of_block[static_cast<std::size_t>(latest)]);
        }
    }
    return chunks;
}

std::vector<std::string> cut_refusals(const model::Model& model, const std::vector<int>& chunks, int count) {
    std::vector<std::string> refusals;
    for (int chunk = 0; chunk < count; ++chunk)
        if (std::ranges::find(chunks, chunk) == chunks.end())
            refusals.push_back(
                fmt::format("chunk {} of the pipeline has no layer; give it a block in stage_blocks", chunk));
    const auto crossing = crossings(model, chunks, count, refusals);
    for (std::size_t border = 0; border < crossing.size(); ++border) {
        if (crossing[border].size() == 1 && *crossing[border].begin() >= 0) continue;
        std::vector<std::string> names;
        for (const int producer : crossing[border]) names.push_back(name_of(model, producer));
        refusals.push_back(
            fmt::format("between chunk {} and {} of the pipeline {} cross ({}), and a stage sends the "
                        "output of one layer; use a pp whose borders lie between blocks",
                        border, border + 1, names.size(), fmt::join(names, ", ")));
    }
    return refusals;
}

}  // namespace lockstep::plan
