#include "search/pipeline_time.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::search {

namespace {

using Slot = plan::PipelineSlot;

constexpr double unknown = -1;

/// One direction of the pipeline, as its stages see it in order: forward from stage 0 on, backward from the last one.
/// All stages take their passes of a direction in the same order.
class Direction {
public:
    Direction(const std::vector<StageTimes>& stages, bool is_forward, std::size_t passes, int vpp)
        : stages_(stages),
          is_forward_(is_forward),
          pp_(stages.size()),
          per_stage_(passes * static_cast<std::size_t>(vpp)),
          group_(pp_ * static_cast<std::size_t>(vpp)),
          vpp_(static_cast<std::size_t>(vpp)),
          pass_end_(pp_ * per_stage_, unknown),
          begin_(pp_ * (per_stage_ + 1), unknown),
          end_(pp_ * (per_stage_ + 1), unknown) {}

    /// The place of a slot among those of the direction.
    std::size_t place(const Slot& slot) const {
        if (vpp_ == 1) return static_cast<std::size_t>(slot.micro_batch);
        const auto m = static_cast<std::size_t>(slot.micro_batch);
        return m / pp_ * group_ + turn(slot) * pp_ + m % pp_;
    }
    /// When what pass `n` of a stage needs has come; 0 when it needs nothing, `unknown` when that can't be told yet.
    double arrival(std::size_t stage, std::size_t n) { return receives(stage, n) ? end(stage, n) : 0; }
    void done(std::size_t stage, std::size_t n, double time) { pass_end_[stage * per_stage_ + n] = time; }

private:
    std::size_t turn(const Slot& slot) const {
        const auto chunk = static_cast<std::size_t>(slot.chunk);
        return is_forward_ ? chunk : vpp_ - 1 - chunk;
    }
    /// Stages counted the way the direction goes.
    std::size_t rank_of(std::size_t stage) const { return is_forward_ ? stage : pp_ - 1 - stage; }
    std::size_t stage_of(std::size_t rank) const { return is_forward_ ? rank : pp_ - 1 - rank; }
    std::size_t turn_of(std::size_t n) const { return n % group_ / pp_; }

    bool receives(std::size_t stage, std::size_t n) const { return rank_of(stage) > 0 || turn_of(n) > 0; }
    bool sends(std::size_t stage, std::size_t n) const { return rank_of(stage) + 1 < pp_ || turn_of(n) + 1 < vpp_; }
    /// Exchange k sends what pass k - 1 left and receives for pass k.
    bool is_there(std::size_t stage, std::size_t k) const {
        return (k > 0 && sends(stage, k - 1)) || (k < per_stage_ && receives(stage, k));
    }
    double message(std::size_t from_rank) const {
        // A link is the same both ways: that of the stage which is nearer to stage 0.
        const std::size_t stage = is_forward_ ? stage_of(from_rank) : stage_of((from_rank + 1) % pp_);
        return stages_[stage].message.value;
    }

    double begin(std::size_t stage, std::size_t k) {
        double& known = begin_[stage * (per_stage_ + 1) + k];
        if (known != unknown) return known;
        double time = 0;
        if (k > 0) {
            time = pass_end_[stage * per_stage_ + k - 1];
            if (time == unknown) return unknown;
            if (is_there(stage, k - 1)) {
                const double before = end(stage, k - 1);
                if (before == unknown) return unknown;
                time = std::max(time, before);
            }
        }
        return known = time;
    }

    double end(std::size_t stage, std::size_t k) {
        double& known = end_[stage * (per_stage_ + 1) + k];
        if (known != unknown) return known;
        double time = begin(stage, k), length = 0;
        if (time == unknown) return unknown;
        const std::size_t rank = rank_of(stage);
        if (k < per_stage_ && receives(stage, k)) {
            const bool wraps = rank == 0;
            const std::size_t from = wraps ? pp_ - 1 : rank - 1;
            const double other = begin(stage_of(from), (wraps ? k - pp_ : k) + 1);
            if (other == unknown) return unknown;
            time = std::max(time, other);
            length = message(from);
        }
        if (k > 0 && sends(stage, k - 1)) {
            const bool wraps = rank + 1 == pp_;
            const double other = begin(stage_of(wraps ? 0 : rank + 1), wraps ? k - 1 + pp_ : k - 1);
            if (other == unknown) return unknown;
            time = std::max(time, other);
            length = std::max(length, message(rank));
        }
        return known = time + length;
    }

    const std::vector<StageTimes>& stages_;
    bool is_forward_;
    std::size_t pp_, per_stage_, group_, vpp_;
    std::vector<double> pass_end_;     // by stage and place
    std::vector<double> begin_, end_;  // of exchanges
};

}  // namespace

std::vector<StageExtent> pipeline_extents(plan::Schedule schedule, const std::vector<StageTimes>& stages, int passes) {
    const std::size_t pp = stages.size();
    const int vpp = static_cast<int>(stages.front().forward.size());
    Direction forward(stages, true, static_cast<std::size_t>(passes), vpp);
    Direction backward(stages, false, static_cast<std::size_t>(passes), vpp);
    std::vector<std::vector<Slot>> orders;
    for (std::size_t s = 0; s < pp; ++s)
        orders.push_back(plan::pipeline_order(schedule, static_cast<int>(pp), vpp, static_cast<int>(s), passes));
    std::vector<std::size_t> next(pp, 0);
    std::vector<double> clock(pp, 0);
    std::vector<StageExtent> extents(pp);
    for (bool is_advancing = true; is_advancing;) {
        is_advancing = false;
        for (std::size_t s = 0; s < pp; ++s)
            for (; next[s] < orders[s].size(); ++next[s], is_advancing = true) {
                const Slot& slot = orders[s][next[s]];
                const bool is_forward = slot.kind == Slot::Kind::forward;
                Direction& direction = is_forward ? forward : backward;
                const std::size_t n = direction.place(slot);
                const double arrival = direction.arrival(s, n);
                if (arrival == unknown) break;
                const auto chunk = static_cast<std::size_t>(slot.chunk);
                const double early = is_forward ? 0 : stages[s].early[chunk].value;
                const double start = std::max(clock[s] + early, arrival);
                if (next[s] == 0) extents[s].begin = Seconds{start};
                clock[s] = start - early + (is_forward ? stages[s].forward : stages[s].backward)[chunk].value;
                direction.done(s, n, clock[s]);
            }
    }
    for (std::size_t s = 0; s < pp; ++s) {
        if (next[s] < orders[s].size()) throw LogicError("a pipeline whose stages wait for each other");
        extents[s].end = Seconds{clock[s]};
    }
    return extents;
}

}  // namespace lockstep::search
