// The tensors of one rank in memory: addresses, first values, values read back.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/arena.hpp"
#include "cpu/kernel.hpp"
#include "step/graph.hpp"
#include "step/liveness.hpp"

namespace lockstep::cpu {

class TensorMemory {
public:
    /// Maps the arena; touches nothing.
    TensorMemory(const step::StepGraph& graph, int rank);

    /// Writes the values of before the first step. Only storages that are carried have any: elsewhere a tensor's
    /// initial value is a definition that parts of it refer to.
    void initialise() const;

    /// As after a step.
    Operand operand(step::TensorId id, std::int32_t micro_batch) const;
    /// Where the op finds them, as step::for_each_operand lists them: of a message group the sends are `in` and the
    /// receives `out`.
    Operands operands(const step::OpInstance& op) const;
    /// Of this micro-batch's copy, where it is when a step ends; of a ring view, of the part that this rank has.
    std::byte* address(step::TensorId id, std::int32_t micro_batch) const;
    /// Row-major values as floats; of the last micro-batch. Throws RuntimeError for tensors this rank doesn't keep.
    std::vector<float> read(step::TensorId id) const;

    const step::StepGraph& graph() const { return graph_; }
    const step::MemoryPlan& plan() const { return plan_; }
    std::int64_t arena_bytes() const { return arena_.bytes(); }

private:
    Operand operand_at(step::TensorId id, std::int64_t offset) const;

    const step::StepGraph& graph_;
    int rank_;
    step::MemoryPlan plan_;
    std::vector<Order> orders_;
    Arena arena_;
};

}  // namespace lockstep::cpu
