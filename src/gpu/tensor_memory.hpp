// The tensors of one rank on its device: addresses, first values, values read back.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/handles.hpp"
#include "gpu/kernel.hpp"
#include "step/graph.hpp"
#include "step/liveness.hpp"

namespace lockstep::gpu {

class TensorMemory {
public:
    /// Allocates the arena on the current device. Throws RuntimeError when the device has no room for it.
    TensorMemory(const step::StepGraph& graph, int rank);

    /// Enqueues the writing of what storages hold before the first step; only those that are carried hold anything.
    void initialise(cudaStream_t stream) const;
    /// Where the op finds them, as step::for_each_operand lists them: of a message group the sends are `in` and the
    /// receives `out`.
    Operands operands(const step::OpInstance& op) const;
    /// Of this micro-batch's copy, where it is when a step ends.
    Operand operand(step::TensorId id, std::int32_t micro_batch) const;
    /// Row-major values as floats, of the last micro-batch; waits for the device. Throws RuntimeError for tensors this
    /// rank doesn't keep.
    std::vector<float> read(step::TensorId id) const;

    const step::StepGraph& graph() const { return graph_; }
    const step::MemoryPlan& plan() const { return plan_; }

private:
    Operand operand_at(step::TensorId id, std::int64_t offset) const;

    const step::StepGraph& graph_;
    int rank_;
    step::MemoryPlan plan_;
    DeviceMemory arena_;
};

}  // namespace lockstep::gpu
