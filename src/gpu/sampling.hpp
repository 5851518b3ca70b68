// In which steps the times of all ops are taken: as many as cost less than a stated share of the run.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "gpu/handles.hpp"
#include "world/world.hpp"

namespace lockstep::gpu {

/// What recording one event costs, the dearer of host and device, on a stream of the current device.
Seconds cost_of_an_event();

class Sampling {
public:
    static constexpr double most_share = 0.005;  ///< of a step's time, averaged over the steps
    static constexpr std::int64_t measured_steps = 3;

    /// `every` 0: decided after the first steps, in which times are always taken.
    Sampling(int every, int events_per_step, Seconds cost_of_an_event)
        : every_(every), is_decided_(every > 0), cost_(cost_of_an_event * static_cast<double>(events_per_step)) {}

    bool takes_times(std::int64_t step) const { return step < measured_steps || step % every() == 0; }
    int every() const { return every_ > 0 ? every_ : 1; }
    bool is_decided() const { return is_decided_; }
    /// What the events of a step that takes times cost.
    Seconds cost_of_a_step() const { return cost_; }
    /// After a step that took this long. Once, after the last measured step, all ranks agree on the largest interval
    /// that any needs, by its shortest step (the first ones are slow): collective over `world` then.
    void step_took(std::int64_t step, Seconds time, world::World& world);

private:
    int every_;
    bool is_decided_;
    Seconds cost_;  // of a step's events
    std::optional<Seconds> shortest_;
};

}  // namespace lockstep::gpu
