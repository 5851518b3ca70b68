// The cost model: durations of the ops of a step graph on a described machine.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "cost/collective_cost.hpp"
#include "cost/fabric.hpp"
#include "cost/wires.hpp"
#include "machine/machine.hpp"
#include "step/durations.hpp"

namespace lockstep::cost {

/// Compute by cost/compute_cost.hpp, communication by cost/collective_cost.hpp, shared links by cost/fabric.hpp. May be
/// asked from several threads.
class CostModel final : public step::Durations {
public:
    /// Keeps its own copy of the machine. Throws InputError when the world needs a network that the machine hasn't.
    CostModel(machine::Machine machine, machine::Placement placement);

    Seconds compute(const step::StepGraph& graph, int rank, const step::OpInstance& op) const override;
    step::CommunicationTime communication(const step::StepGraph& graph, int rank,
                                          const step::OpInstance& op) const override;
    double compute_slowdown() const override { return machine_.calibration.compute_slowdown; }
    /// How a collective of `rank` is carried out.
    CollectiveChoice choice(const step::StepGraph& graph, int rank, const step::Collective& collective) const;
    std::vector<Bandwidth> links() const override;
    std::vector<step::LinkLoad> loads(const step::StepGraph& graph, int rank,
                                      const step::OpInstance& op) const override;
    std::vector<std::int64_t> likeness(const step::StepGraph& graph, int rank) const override;

    /// What a slow host adds to the issue of each op.
    Seconds host_per_op() const { return machine_.calibration.host_per_op; }
    const machine::Machine& machine() const { return machine_; }

private:
    /// Mesh, axes as bits, a hash of the stages and the lowest rank. No vectors: it is asked for each rank of each
    /// graph.
    using WireKey = std::array<std::uint64_t, 9>;
    static WireKey key_of(const plan::Mesh& mesh, const step::Communicator& communicator, int rank);

    CollectiveChoice choice_locked(const step::StepGraph& graph, int rank, const step::Collective& collective) const;
    int wires_number(const step::StepGraph& graph, const step::Communicator& communicator, int rank) const;
    const Wires& wires(const step::StepGraph& graph, const step::Communicator& communicator, int rank) const;
    MessageWire message_wire(int from, int to) const;
    step::CommunicationTime messages(const step::StepGraph& graph, int rank, const step::P2PGroup& group) const;
    Loads message_loads(const step::StepGraph& graph, int rank, const step::P2PGroup& group) const;
    Loads collective_loads(const step::StepGraph& graph, int rank, const step::Collective& collective) const;
    const machine::Calibration& calibration_of(const Wires& wires) const;

    machine::Machine machine_;
    machine::Placement placement_;
    mutable std::mutex mutex_;
    Fabric fabric_;
    std::vector<Bandwidth> links_;
    mutable std::deque<Wires> known_wires_;
    mutable std::map<std::pair<Placing, double>, int>
        number_of_placing_;  ///< with the network's rate where uplinks count
    mutable std::map<WireKey, int> number_of_communicator_;
};

}  // namespace lockstep::cost
