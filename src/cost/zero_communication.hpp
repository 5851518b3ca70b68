// A world in which communication costs nothing: the ideal that efficiencies are measured against.
#pragma once

#include "step/durations.hpp"

namespace lockstep::cost {

/// Compute as `inner` says, communication in no time and at no cost to compute. `inner` must outlive it.
class ZeroCommunication final : public step::Durations {
public:
    explicit ZeroCommunication(const step::Durations& inner) : inner_(inner) {}

    Seconds compute(const step::StepGraph& graph, int rank, const step::OpInstance& op) const override {
        return inner_.compute(graph, rank, op);
    }
    step::CommunicationTime communication(const step::StepGraph&, int, const step::OpInstance&) const override {
        return {};
    }
    double compute_slowdown() const override { return 0; }

private:
    const step::Durations& inner_;
};

}  // namespace lockstep::cost
