#include "cpu/kernel_table.hpp"

#include <algorithm>
#include <map>

#include "cpu/kernels.hpp"
#include "cpu/onednn.hpp"
#include "cpu/run_state.hpp"
#include "step/storage.hpp"

namespace lockstep::cpu {
namespace {

bool is_convolution(const step::Op& op) {
    const auto* compute = std::get_if<step::Compute>(&op.kind);
    return compute != nullptr && std::holds_alternative<step::Convolution>(*compute);
}

}  // namespace

KernelTable::KernelTable(const step::Schedule& schedule, const TensorMemory& memory, std::uint64_t seed)
    : library_(std::make_unique<OneDnn>()), by_position_(schedule.ops.size(), nullptr) {
    const KernelSetup setup{*library_, seed};
    std::map<std::pair<std::int32_t, std::int32_t>, Kernel*> made;  // by op and the micro-batch it is tied to
    // Convolutions come first: they choose the order of packed weights, which reorders must know.
    for (const bool wants_convolution : {true, false})
        for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
            const step::ScheduledOp& op = schedule.ops[i];
            if (!runs_on_compute_thread(schedule.lanes[static_cast<std::size_t>(op.lane)])) continue;
            if (is_convolution(*op.instance.op) != wants_convolution) continue;
            const bool moves = step::moves_with_micro_batch(memory.graph(), memory.plan(), op.instance);
            Kernel*& kernel = made[{op.instance.number, moves ? op.instance.micro_batch : -1}];
            if (kernel == nullptr) {
                kernels_.push_back(make_kernel(*op.instance.op, memory.operands(op.instance), setup));
                kernel = kernels_.back().get();
            }
            by_position_[i] = kernel;
        }
    std::int64_t bytes = 0;
    for (const auto& kernel : kernels_) bytes = std::max(bytes, kernel->scratch_bytes());
    scratch_ = std::make_unique<Arena>(bytes, "temporaries of kernels");
    scratch_->touch();
    for (const auto& kernel : kernels_) kernel->bind_scratch(scratch_->data());
}

KernelTable::~KernelTable() = default;

}  // namespace lockstep::cpu
