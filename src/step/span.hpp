// What happened: when each op of a step ran on a rank; measured and predicted alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "step/device_sample.hpp"

namespace lockstep::step {

/// Times since the run's epoch.
struct Span {
    std::int32_t op = 0;  ///< number among the ops of all blocks
    std::int32_t micro_batch = 0;
    std::int32_t stream = 0;
    Nanoseconds ready;  ///< issued and its dependencies done; for a collective: this rank's arrival
    Nanoseconds start;  ///< for a collective: when this rank began to take part
    Nanoseconds end;
};

/// One step of one rank.
struct StepRecord {
    std::int64_t step = 0;
    int rank = 0;
    std::int64_t multiplicity = 1;       ///< ranks this record stands for (predictions)
    Nanoseconds begin;                   ///< first op issued
    Nanoseconds end;                     ///< last op of the step complete; a step's time is end minus the end before
    double loss = 0;                     ///< NaN when not computed (predictions)
    std::vector<Span> spans;             ///< in issue order
    std::optional<DeviceSample> device;  ///< the last one taken during the step
};

}  // namespace lockstep::step
