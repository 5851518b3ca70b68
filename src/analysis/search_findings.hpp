// What a search for the best plan found; knows nothing of how it is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings.hpp"

namespace lockstep::analysis {

/// Why a plan isn't the best one: the part of its step time that grew most, or its memory.
struct Reason {
    enum class Kind { none, compute, recomputation, communication, bubble, synchronisation, optimizer, memory };
    Kind kind = Kind::none;
    Seconds part, best_part;    ///< of the plan and of the best one
    Seconds total, best_total;  ///< step times
    std::string recompute;      ///< the plan's mode, of Kind::recomputation
    int tp_across_nodes = 0;    ///< the plan's tp where it crosses nodes and the best one's doesn't; else 0
    Bytes needs, limit;         ///< of Kind::memory
};

/// A plan that was simulated, op by op.
struct RankedPlan {
    std::string plan;  ///< as an experiment writes it: "{tp: 8, pp: 8, zero: 1, microbatch: 2}"
    RunFindings run;
    std::optional<Seconds> estimate;  ///< what it was picked by
    Reason reason;                    ///< Kind::none for the best
};

/// How good the best plan with one value of an axis is.
struct AxisValue {
    std::string axis, value;      ///< "tp", "16"
    std::string plan;             ///< the best with it; "" when none fits
    std::optional<Seconds> time;  ///< of that; none when none fits
    bool is_estimate = false;     ///< the time was estimated
    Reason reason;                ///< Kind::none for the value of the best plan
};

struct SearchCounts {
    std::int64_t combinations = 0;        ///< of the lists
    std::int64_t plans = 0;               ///< that the model can be trained by
    std::int64_t above_memory = 0;        ///< of them, discarded: more memory than the limit
    std::int64_t above_bound = 0;         ///< discarded: a plan known is faster and smaller than their floors
    std::int64_t estimated = 0;           ///< simulated block by block
    std::int64_t simulated = 0;           ///< simulated op by op
    std::int64_t small_graphs = 0;        ///< simulated for the estimates' pieces
    std::int64_t left_within_margin = 0;  ///< not simulated though their estimate is within `margin` of the best time
};

struct SearchFindings {
    std::string experiment, label, model, machine, precision, framework;
    int ranks = 1;
    std::int64_t global_batch = 0;
    std::string throughput_unit;
    Bytes limit, capacity;
    std::string limit_source;         ///< "device memory less 5 %", "--memory"
    std::vector<std::string> space;   ///< "tp: [1, 2, 4]"
    std::vector<RankedPlan> ranking;  ///< fastest first; all fit
    std::vector<RankedPlan> front;    ///< no other is faster and smaller; least time first
    std::vector<AxisValue> axes;
    SearchCounts counts;
    double margin = 0;           ///< of the estimates, as a share
    bool is_complete = true;     ///< false: it was stopped
    bool is_exhaustive = false;  ///< every plan was simulated
    std::string why_exhaustive;  ///< "" when asked for
};

}  // namespace lockstep::analysis
