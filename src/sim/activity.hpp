// Work in progress whose rate can change: kernels that slow down, transfers that share links.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

namespace lockstep::sim {

struct Activity;
using ActivityId = Id<Activity>;

constexpr double raw_value(double v) { return v; }
template <int B, int F, int S>
constexpr double raw_value(Quantity<B, F, S> q) {
    return q.value;
}

/// A moment at which an activity may be done: to be put into the event queue and handed back to `fire` when it comes.
struct Due {
    ActivityId id;
    std::uint32_t version = 0;
    Picoseconds time;
    bool is_posted = true;  ///< false: nothing to post (the event already pending serves, or the rate is 0)
};

/// Activities of `Work` (Bytes at Bandwidth, or Seconds at a speed without dimension). A change of rate is lazy: when
/// the end moves later the pending event stays and is postponed as it fires; when it moves earlier a new event replaces
/// it and the old one is recognised as stale by its version. So an activity slowed k times costs one event, not k.
template <class Work>
class Activities {
public:
    using Rate = decltype(Work{} / Seconds{1});

    enum class Outcome { stale, postponed, done };
    struct Fired {
        Outcome outcome = Outcome::stale;
        Due due;  ///< when postponed: the next event
    };

    /// Begins `work` (not negative) at `rate` (not negative; 0: it stands still).
    Due start(Work work, Rate rate, Picoseconds now) {
        const ActivityId id = take_slot();
        State& a = states_[id.index()];
        a.remaining = raw_value(work);
        a.rate = raw_value(rate);
        a.updated = now;
        a.posted = never;
        return post_if_earlier(id, now);
    }

    /// Changes the rate from `now` on.
    Due set_rate(ActivityId id, Rate rate, Picoseconds now) {
        State& a = states_[id.index()];
        a.remaining = remaining_at(a, now);
        a.updated = now;
        a.rate = raw_value(rate);
        return post_if_earlier(id, now);
    }

    Work remaining(ActivityId id, Picoseconds now) const { return Work{remaining_at(states_[id.index()], now)}; }

    /// An event of a Due has come. `done` frees the activity: its id may be given out again.
    Fired fire(ActivityId id, std::uint32_t version, Picoseconds now) {
        State& a = states_[id.index()];
        if (a.version != version) return {};
        const Picoseconds end = end_time(a);
        if (end <= now) {
            ++a.version;
            free_.push_back(id);
            return {Outcome::done, {}};
        }
        a.posted = end;
        return {Outcome::postponed, {id, version, end, end != never}};
    }

    /// Activities that were started and are not done.
    std::size_t active() const { return states_.size() - free_.size(); }

private:
    static constexpr Picoseconds never{INT64_MAX};

    struct State {
        double remaining = 0;
        double rate = 0;
        Picoseconds updated;
        Picoseconds posted = never;
        std::uint32_t version = 0;
    };

    static double remaining_at(const State& a, Picoseconds now) {
        const double left = a.remaining - a.rate * static_cast<double>((now - a.updated).count) * 1e-12;
        return left > 0 ? left : 0;
    }

    static Picoseconds end_time(const State& a) {
        if (a.remaining <= 0) return a.updated;
        if (a.rate <= 0) return never;
        const double seconds = a.remaining / a.rate;
        if (!(seconds < 9e6)) throw RuntimeError("an op lasts more than 100 days (a rate is almost 0); check rates");
        return a.updated + to_picoseconds(Seconds{seconds});
    }

    ActivityId take_slot() {
        if (!free_.empty()) {
            const ActivityId id = free_.back();
            free_.pop_back();
            return id;
        }
        states_.emplace_back();
        return {static_cast<std::int32_t>(states_.size() - 1)};
    }

    Due post_if_earlier(ActivityId id, Picoseconds now) {
        State& a = states_[id.index()];
        const Picoseconds end = end_time(a);
        if (end >= a.posted) return {id, a.version, a.posted, false};
        a.posted = end < now ? now : end;
        return {id, ++a.version, a.posted, true};
    }

    std::vector<State> states_;
    std::vector<ActivityId> free_;
};

}  // namespace lockstep::sim
