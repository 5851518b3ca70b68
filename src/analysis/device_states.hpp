// Whether the devices of a run were slowed down, or unlike one another, by power or heat.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "step/span.hpp"

namespace lockstep::analysis {

/// Takes the counted steps of all ranks; those whose devices were not looked at say nothing.
class DeviceStates {
public:
    void add(const step::StepRecord& record);
    /// Power cap or heat in more than a few steps; SM clocks that vary by more than a tenth over the steps (5th to 95th
    /// percentile); ranks whose median SM clock is more than a twentieth below the fastest one's.
    std::vector<std::string> warnings() const;

private:
    struct OfRank {
        std::int64_t steps = 0, slowed_steps = 0;
        step::ThrottleReasons reasons;  ///< all that were seen, except idle
        std::vector<double> clocks;     ///< hertz
    };
    void warn_of_slowdown(std::vector<std::string>& warnings) const;
    void warn_of_change(std::vector<std::string>& warnings) const;
    void warn_of_laggards(std::vector<std::string>& warnings) const;
    std::map<int, OfRank> ranks_;
};

}  // namespace lockstep::analysis
