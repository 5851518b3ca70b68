#include "drive/shortened_memory.hpp"

#include <set>

#include "drive/build.hpp"

namespace lockstep::drive {

namespace {

Bytes bytes_per_pass(const step::StepGraph& graph, const step::RankClass& rank_class) {
    std::set<step::BlockId> blocks;
    for (const step::Issue& issue : rank_class.program.issues) blocks.insert(issue.block);
    std::set<step::TensorId> storages;
    for (const step::BlockId block : blocks)
        for (const step::Op& op : graph.block(block).ops)
            step::for_each_operand({&op, 0, 0, 0}, [&](step::TensorId id, std::int32_t, const step::Write*) {
                const step::Tensor& tensor = graph.tensor(id);
                storages.insert(tensor.view ? tensor.view->of : id);
            });
    Bytes bytes;
    for (const step::TensorId id : storages)
        if (graph.tensor(id).slots == graph.micro_batches) bytes += graph.tensor(id).bytes();
    return bytes;
}

}  // namespace

std::vector<step::MemoryPlan> shortened_memory(const step::StepGraph& graph, const plan::ShortenedPasses& passes) {
    auto memory = step::measure_memory(graph);
    for (std::size_t c = 0; c < memory.size(); ++c) {
        const Bytes further = static_cast<double>(passes.all - passes.more) * bytes_per_pass(graph, graph.classes[c]);
        memory[c].peak.activations += further;
        memory[c].peak.total += further;
    }
    return memory;
}

step::MemoryUse most_of(const std::vector<step::MemoryPlan>& classes) {
    step::MemoryUse most;
    for (const step::MemoryPlan& memory : classes)
        if (memory.peak.total > most.total) most = memory.peak;
    return most;
}

step::MemoryUse most_memory(const experiment::Experiment& experiment, const plan::Plan& plan,
                            const machine::Placement& placement) {
    const auto passes = plan::shortened_passes(plan);
    const step::StepGraph graph =
        build_unchecked(experiment, passes ? plan::with_passes(plan, passes->more) : plan, placement);
    return most_of(passes ? shortened_memory(graph, *passes) : step::measure_memory(graph));
}

}  // namespace lockstep::drive
