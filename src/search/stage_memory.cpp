#include "search/stage_memory.hpp"

#include <algorithm>
#include <set>

#include "step/liveness.hpp"

namespace lockstep::search {

namespace {

/// Storages that a class touches; `early`: before the last pass is over, as most gradient buffers are not.
struct Touched {
    std::set<step::TensorId> all, early;
};

Touched storages_of(const step::StepGraph& graph, const step::RankClass& rank_class) {
    std::set<step::BlockId> blocks;
    for (const step::Issue& issue : rank_class.program.issues) blocks.insert(issue.block);
    Touched touched;
    for (const step::BlockId block : blocks)
        for (const step::Op& op : graph.block(block).ops)
            step::for_each_operand({&op, 0, 0, 0}, [&](step::TensorId id, std::int32_t, const step::Write*) {
                const step::Tensor& tensor = graph.tensor(id);
                const step::TensorId storage = tensor.view ? tensor.view->of : id;
                touched.all.insert(storage);
                if (op.phase != step::Phase::optimizer && !op.is_last_micro_batch_only) touched.early.insert(storage);
            });
    return touched;
}

/// Fixed and kept. Inputs are left out: they are small and as many as the passes.
StageMemory sums_of(const step::StepGraph& graph, const step::RankClass& rank_class) {
    const Touched touched = storages_of(graph, rank_class);
    StageMemory memory;
    for (const step::TensorId id : touched.all) {
        const step::Tensor& tensor = graph.tensor(id);
        const bool is_there = tensor.lifetime == step::Lifetime::carried ||
                              (tensor.lifetime == step::Lifetime::step && touched.early.contains(id));
        if (tensor.role == step::Role::input) continue;
        if (is_there)
            memory.fixed += static_cast<double>(tensor.slots) * tensor.bytes();
        else if (tensor.lifetime == step::Lifetime::micro_batch && graph.mesh.pp > 1 &&
                 tensor.slots == graph.micro_batches)
            memory.kept += tensor.bytes();
    }
    return memory;
}

template <class F>
void for_each_stage(const step::StepGraph& graph, F&& f) {
    for (const step::RankClassId id : graph.class_of_stage) f(id.index());
}

}  // namespace

std::vector<StageMemory> stage_memory(const step::StepGraph& graph) {
    const auto classes = step::measure_memory(graph);
    std::vector<StageMemory> stages;
    for_each_stage(graph, [&](std::size_t c) {
        StageMemory memory = sums_of(graph, graph.classes[c]);
        const Bytes known = memory.fixed + static_cast<double>(graph.micro_batches) * memory.kept;
        memory.transient = std::max(Bytes{}, classes[c].peak.total - known);
        stages.push_back(memory);
    });
    return stages;
}

std::vector<StageMemory> fixed_memory(const step::StepGraph& graph) {
    std::vector<StageMemory> stages;
    for_each_stage(graph, [&](std::size_t c) { stages.push_back(sums_of(graph, graph.classes[c])); });
    return stages;
}

}  // namespace lockstep::search
