// The prepared kernels of one step of a rank, and the scratch block they share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/arena.hpp"
#include "cpu/kernel.hpp"
#include "cpu/tensor_memory.hpp"
#include "step/schedule.hpp"

namespace lockstep::cpu {

class OneDnn;

/// One kernel per op of the compute lanes; ops whose operands move with the micro-batch have one for each. Make and run
/// it on one thread.
class KernelTable {
public:
    KernelTable(const step::Schedule& schedule, const TensorMemory& memory, std::uint64_t seed);
    ~KernelTable();
    KernelTable(const KernelTable&) = delete;
    KernelTable& operator=(const KernelTable&) = delete;

    /// Kernel of an op by its position in the schedule; null for ops that another thread runs.
    Kernel* at(std::int32_t position) const { return by_position_[static_cast<std::size_t>(position)]; }
    std::int64_t scratch_bytes() const { return scratch_->bytes(); }

private:
    std::unique_ptr<OneDnn> library_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
    std::vector<Kernel*> by_position_;
    std::unique_ptr<Arena> scratch_;
};

}  // namespace lockstep::cpu
