#include "gpu/kernel_table.hpp"

#include <algorithm>
#include <utility>

#include "step/storage.hpp"

namespace lockstep::gpu {

KernelTable::KernelTable(const step::Schedule& schedule, const TensorMemory& memory)
    : by_position_(schedule.ops.size(), nullptr) {
    const KernelSetup setup{blas_, dnn_, memory.graph().seed};
    std::map<std::pair<std::int32_t, std::int32_t>, Kernel*> made;  // by op and the micro-batch it is tied to
    std::vector<std::int64_t> needed(schedule.lanes.size(), 0);
    std::vector<std::pair<Kernel*, std::size_t>> lane_of;
    for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
        const step::ScheduledOp& op = schedule.ops[i];
        const auto lane = static_cast<std::size_t>(op.lane);
        if (step::is_communication(*op.instance.op)) continue;
        const bool moves = step::moves_with_micro_batch(memory.graph(), memory.plan(), op.instance);
        Kernel*& kernel = made[{op.instance.number, moves ? op.instance.micro_batch : -1}];
        if (kernel == nullptr) {
            kernels_.push_back(make_kernel(*op.instance.op, memory.operands(op.instance), setup));
            kernel = kernels_.back().get();
            needed[lane] = std::max(needed[lane], kernel->workspace_bytes());
            lane_of.emplace_back(kernel, lane);
            if (std::string algorithm = kernel->algorithm(); !algorithm.empty())
                algorithms_[op.instance.op->name] = std::move(algorithm);
        }
        by_position_[i] = kernel;
    }
    for (const std::int64_t bytes : needed) {
        workspaces_.push_back(allocate_device(bytes, "workspaces of kernels"));
        workspace_bytes_ += bytes;
    }
    for (const auto& [kernel, lane] : lane_of) kernel->bind_workspace(workspaces_[lane].get());
}

}  // namespace lockstep::gpu
