#include "sim/shapes.hpp"

#include <algorithm>
#include <map>

namespace lockstep::sim {

namespace {

/// Equal keys, equal shapes.
std::vector<std::int64_t> key_of(const step::StepGraph& graph, const step::Op& op) {
    if (const auto* c = std::get_if<step::Collective>(&op.kind))
        return {0, c->communicator.value, c->kind == step::CollectiveKind::all_to_all};
    const auto& group = std::get<step::P2PGroup>(op.kind);
    std::vector<std::int64_t> key{1, group.communicator.value, static_cast<std::int64_t>(group.sends.size())};
    for (const auto* messages : {&group.sends, &group.receives})
        for (const step::Message& m : *messages)
            for (const std::int64_t part :
                 {static_cast<std::int64_t>(m.peer.axis), static_cast<std::int64_t>(m.peer.offset),
                  static_cast<std::int64_t>(m.peer.wraps),
                  static_cast<std::int64_t>(graph.tensor(m.tensor).bytes().value)})
                key.push_back(part);
    return key;
}

}  // namespace

Shapes find_shapes(const step::StepGraph& graph) {
    Shapes shapes;
    shapes.of_op.assign(static_cast<std::size_t>(graph.op_count()), -1);
    std::map<std::vector<std::int64_t>, std::int32_t> known;
    for (const step::RankClass& rank_class : graph.classes) {
        std::vector<std::int32_t> own;
        std::vector<bool> is_seen(graph.blocks.size(), false);
        for (const step::Issue& issue : rank_class.program.issues) {
            if (is_seen[issue.block.index()]) continue;
            is_seen[issue.block.index()] = true;
            const step::Block& block = graph.block(issue.block);
            for (std::size_t i = 0; i < block.ops.size(); ++i) {
                const step::Op& op = block.ops[i];
                if (!step::is_communication(op)) continue;
                const auto number = block.first_op + static_cast<std::int32_t>(i);
                auto& shape = shapes.of_op[static_cast<std::size_t>(number)];
                if (shape < 0) {
                    const auto [entry, is_new] =
                        known.try_emplace(key_of(graph, op), static_cast<std::int32_t>(shapes.all.size()));
                    shape = entry->second;
                    if (is_new) shapes.all.push_back({&op, number, issue.micro_batch, issue.chunk});
                }
                own.push_back(shape);
            }
        }
        std::ranges::sort(own);
        own.erase(std::unique(own.begin(), own.end()), own.end());
        shapes.of_class.push_back(std::move(own));
    }
    return shapes;
}

}  // namespace lockstep::sim
