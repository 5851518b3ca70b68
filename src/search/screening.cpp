#include "search/screening.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>

#include "search/workers.hpp"

namespace lockstep::search {

namespace {

constexpr std::size_t batch_size = 256;

/// Estimates of which none is beaten in both time and memory.
class Front {
public:
    void add(Seconds time, Bytes memory) {
        if (beats(time, memory)) return;
        std::erase_if(points_, [&](const Point& p) { return p.time >= time && p.memory >= memory; });
        points_.push_back({time, memory});
    }
    /// Whether a known plan is as fast and as small.
    bool beats(Seconds time, Bytes memory) const {
        return std::any_of(points_.begin(), points_.end(),
                           [&](const Point& p) { return p.time <= time && p.memory <= memory; });
    }
    std::optional<Seconds> best() const {
        std::optional<Seconds> least;
        for (const Point& p : points_)
            if (!least || p.time < *least) least = p.time;
        return least;
    }

private:
    struct Point {
        Seconds time;
        Bytes memory;
    };
    std::vector<Point> points_;
};

std::vector<std::size_t> by_floor(const std::vector<Screened>& screened) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < screened.size(); ++i)
        if (screened[i].fate == Screened::Fate::not_reached) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return screened[a].floor < screened[b].floor; });
    return order;
}

void estimate(const plan::Plan& plan, Estimator& estimator, Bytes limit, Screened& screened) {
    screened.memory = estimator.memory(plan);
    if (screened.memory > (1 + memory_margin) * limit) {
        screened.fate = Screened::Fate::above_memory;
        return;
    }
    screened.parts = estimator.estimate(plan).parts;
    screened.fate = Screened::Fate::estimated;
}

class Clock {
public:
    double rate(std::int64_t count) const {
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
        return seconds > 0 ? static_cast<double>(count) / seconds : 0;
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<Screened> screen_by_floors(const plan::Space& space, const Bounds& bounds, Bytes limit) {
    std::vector<Screened> screened;
    for (const plan::Candidate& candidate : space.candidates) {
        Screened one;
        one.floor = bounds.time(candidate.plan);
        one.memory = bounds.memory(candidate.plan);
        if (one.memory > limit) one.fate = Screened::Fate::above_memory;
        screened.push_back(one);
    }
    return screened;
}

std::vector<Screened> screen(const plan::Space& space, const Bounds& bounds, Estimator& estimator,
                             const SearchOptions& options) {
    std::vector<Screened> screened = screen_by_floors(space, bounds, options.limit);
    const std::vector<std::size_t> order = by_floor(screened);
    const Clock clock;
    Front front;
    for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
        const std::size_t end = std::min(begin + batch_size, order.size());
        std::vector<std::size_t> batch;
        for (std::size_t i = begin; i < end; ++i) {
            Screened& one = screened[order[i]];
            if (front.beats(one.floor / (1 + time_margin), one.memory / (1 + memory_margin)))
                one.fate = Screened::Fate::above_bound;
            else
                batch.push_back(order[i]);
        }
        const bool is_whole = share_out(batch.size(), options.threads, options.is_stopped, [&](std::size_t i) {
            estimate(space.candidates[batch[i]].plan, estimator, options.limit, screened[batch[i]]);
        });
        for (const std::size_t i : batch)
            if (screened[i].fate == Screened::Fate::estimated && screened[i].memory <= options.limit)
                front.add(screened[i].parts.total(), screened[i].memory);
        const auto done = static_cast<std::int64_t>(end);
        options.show({"estimates", done, static_cast<std::int64_t>(order.size()), front.best(), clock.rate(done)});
        if (!is_whole) break;
    }
    return screened;
}

}  // namespace lockstep::search
