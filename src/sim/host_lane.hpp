// The host thread of one rank: it issues ops in order, each costs time, and it may run ahead of the device by a limit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace lockstep::sim {

/// Op i is issued at the end of its host time, which begins at max(end of op i-1's host time, completion of the op that
/// makes room under the limit). A blocking launch is a limit of 1. Issue times are worked out as soon as they are
/// certain, so they may lie ahead of the simulation's clock.
class HostLane {
public:
    explicit HostLane(std::int64_t run_ahead = 1) : run_ahead_(run_ahead) {}

    bool has_room() const { return issued_ - completed_ < run_ahead_; }
    /// Issues the next op; returns when it is issued.
    Picoseconds issue(Picoseconds host_time) {
        ++issued_;
        free_ = free_ + host_time;
        return free_;
    }
    void complete() { ++completed_; }
    /// The host can't go on before `time`.
    void hold_until(Picoseconds time) { free_ = std::max(free_, time); }
    std::int64_t issued() const { return issued_; }

private:
    std::int64_t run_ahead_;
    std::int64_t issued_ = 0;
    std::int64_t completed_ = 0;
    Picoseconds free_;
};

}  // namespace lockstep::sim
