// The cost model: durations of the ops of a step graph on a described machine.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "cost/wires.hpp"
#include "machine/machine.hpp"
#include "step/durations.hpp"

namespace lockstep::cost {

/// Compute by cost/compute_cost.hpp, communication by cost/collective_cost.hpp. May be asked from several threads.
class CostModel final : public step::Durations {
public:
    /// Keeps its own copy of the machine.
    CostModel(machine::Machine machine, machine::Placement placement);

    Seconds compute(const step::StepGraph& graph, int rank, const step::OpInstance& op) const override;
    step::CommunicationTime communication(const step::StepGraph& graph, int rank,
                                          const step::OpInstance& op) const override;
    double compute_slowdown() const override { return machine_.calibration.compute_slowdown; }

    /// What a slow host adds to the issue of each op.
    Seconds host_per_op() const { return machine_.calibration.host_per_op; }
    const machine::Machine& machine() const { return machine_; }

private:
    using Extents = std::array<int, 6>;
    using WireKey = std::tuple<Extents, int, std::vector<plan::Axis>, std::vector<int>>;  ///< mesh, rank, axes, stages

    Wires wires(const step::StepGraph& graph, const step::Communicator& communicator, int rank) const;
    step::CommunicationTime messages(const step::StepGraph& graph, int rank, const step::P2PGroup& group) const;

    machine::Machine machine_;
    machine::Placement placement_;
    mutable std::mutex mutex_;
    mutable std::map<Placing, Wires> wires_of_pattern_;
    mutable std::map<WireKey, Wires> wires_;  ///< searching for rings takes long; each communicator is searched once
};

}  // namespace lockstep::cost
