// What a plan makes of a step: its ops, messages, communicators and memory, as text and as JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/json.hpp"
#include "plan/shortened.hpp"
#include "step/graph.hpp"
#include "step/liveness.hpp"

namespace lockstep::report {

/// A step with what is known of the device it should fit.
struct PlanView {
    const step::StepGraph& graph;
    std::vector<step::MemoryPlan> memory;                            ///< by class
    std::string device;                                              ///< empty: none is known
    Bytes capacity;                                                  ///< of the device; 0: not known
    std::optional<std::int64_t> largest_micro_batch = std::nullopt;  ///< that fits; 0: not even one sample
    /// "ring ll128": how a rank of a class carries out a collective; none: not known.
    std::function<std::string(const step::RankClass&, const step::Collective&)> algorithm_of = {};
    int nics_per_node = 0;                                              ///< 0: no network
    std::optional<plan::ShortenedPasses> memory_passes = std::nullopt;  ///< that memory was measured with
};

/// For each class of ranks: what it issues, work by phase and kind of op, everything it sends; the communicators and
/// the nodes they cross; memory by class and category.
std::string format_plan(const PlanView& view);

/// The same as an object: name, mesh, batch, communicators[{name, ranks, nodes, nics}], classes[{name, multiplicity,
/// issues, work[], communication[{op, kind, communicator, dtype, bytes, times, algorithm}],
/// memory_bytes_per_rank{parameters ... total}, peak_op}], memory_bytes_per_rank (of the class that needs most),
/// device, capacity_bytes, largest_micro_batch.
config::Json plan_json(const PlanView& view);

}  // namespace lockstep::report
