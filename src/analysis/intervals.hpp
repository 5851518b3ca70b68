// Sets of time intervals: unions, clips and differences, so that overlapping work is counted once.
#pragma once

#include <vector>

#include "base/time.hpp"

namespace lockstep::analysis {

struct Interval {
    Nanoseconds begin, end;
};

/// Sorted, disjoint intervals.
class IntervalSet {
public:
    IntervalSet() = default;
    /// The union of any intervals; empty and reversed ones are dropped.
    explicit IntervalSet(std::vector<Interval> intervals);

    const std::vector<Interval>& intervals() const { return intervals_; }
    Seconds length() const;
    IntervalSet without(const IntervalSet& other) const;
    IntervalSet intersected(const IntervalSet& other) const;
    IntervalSet clipped(Interval window) const;
    IntervalSet united(const IntervalSet& other) const;

private:
    std::vector<Interval> intervals_;
};

}  // namespace lockstep::analysis
