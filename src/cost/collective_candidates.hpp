// What each of NCCL's algorithms and protocols would take for a collective.
#pragma once

#include <string>
#include <vector>

#include "cost/wires.hpp"
#include "step/durations.hpp"

namespace lockstep::cost {

/// An algorithm with a protocol, and its time alone.
struct CollectiveChoice {
    machine::CollectiveAlgorithm algorithm = machine::CollectiveAlgorithm::ring;
    machine::CollectiveProtocol protocol = machine::CollectiveProtocol::simple;
    step::CommunicationTime time;
};

/// "ring ll128"
std::string to_string(const CollectiveChoice& choice);

/// Bytes that each rank sends in a collective, as busbw counts them: 2(n-1)/n S of an all_reduce, S of a broadcast,
/// (n-1)/n S of the others.
Bytes wire_bytes(step::CollectiveKind kind, int ranks, Bytes buffer);

/// Those that `wires` offer, or what is forced of them, by the formulas of choose_collective; without all_to_all, whose
/// messages have no such choice. At least 2 ranks.
std::vector<CollectiveChoice> candidates(const machine::Calibration& calibration, const Wires& wires,
                                         step::CollectiveKind kind, Bytes buffer);

}  // namespace lockstep::cost
