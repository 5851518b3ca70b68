#include "analysis/intervals.hpp"

#include <algorithm>

namespace lockstep::analysis {

IntervalSet::IntervalSet(std::vector<Interval> intervals) {
    std::erase_if(intervals, [](const Interval& i) { return !(i.begin < i.end); });
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    for (const Interval& interval : intervals) {
        if (!intervals_.empty() && interval.begin <= intervals_.back().end)
            intervals_.back().end = std::max(intervals_.back().end, interval.end);
        else
            intervals_.push_back(interval);
    }
}

Seconds IntervalSet::length() const {
    std::int64_t total = 0;
    for (const Interval& interval : intervals_) total += (interval.end - interval.begin).count;
    return Nanoseconds{total}.seconds();
}

IntervalSet IntervalSet::intersected(const IntervalSet& other) const {
    IntervalSet result;
    auto a = intervals_.begin();
    auto b = other.intervals_.begin();
    while (a != intervals_.end() && b != other.intervals_.end()) {
        const Nanoseconds begin = std::max(a->begin, b->begin);
        const Nanoseconds end = std::min(a->end, b->end);
        if (begin < end) result.intervals_.push_back({begin, end});
        if (a->end < b->end)
            ++a;
        else
            ++b;
    }
    return result;
}

IntervalSet IntervalSet::without(const IntervalSet& other) const {
    IntervalSet result;
    auto cut = other.intervals_.begin();
    for (Interval rest : intervals_) {
        while (cut != other.intervals_.end() && cut->end <= rest.begin) ++cut;
        for (auto c = cut; c != other.intervals_.end() && c->begin < rest.end; ++c) {
            if (rest.begin < c->begin) result.intervals_.push_back({rest.begin, c->begin});
            rest.begin = std::max(rest.begin, c->end);
        }
        if (rest.begin < rest.end) result.intervals_.push_back(rest);
    }
    return result;
}

IntervalSet IntervalSet::clipped(Interval window) const { return intersected(IntervalSet({window})); }

IntervalSet IntervalSet::united(const IntervalSet& other) const {
    std::vector<Interval> all = intervals_;
    all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
    return IntervalSet(std::move(all));
}

}  // namespace lockstep::analysis
