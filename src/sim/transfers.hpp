// Transfers under way: activities in bytes whose rates follow from the links they share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/activity.hpp"
#include "sim/link_share.hpp"

namespace lockstep::sim {

/// Joins Activities<Bytes> and LinkShare: starting or ending a transfer, or changing a link, changes the rates of those
/// that share links with it, and their ends move.
class Transfers {
public:
    using Outcome = Activities<Bytes>::Outcome;

    SharedLinkId add_link(Bandwidth capacity) { return share_.add_link(capacity); }
    void set_capacity(SharedLinkId link, Bandwidth capacity, Picoseconds now);

    /// A transfer of `work` bytes, at most at `cap` (its rate when alone).
    ActivityId start(Bytes work, Bandwidth cap, std::span<const LinkUse> uses, Picoseconds now);
    /// To be called when an event of `posts()` comes; `done` ends the transfer and frees its id.
    Outcome fire(ActivityId id, std::uint32_t version, Picoseconds now);

    Bandwidth rate(ActivityId id) const { return share_.rate(flow_of_[id.index()]); }
    /// Events to put into the queue since clear_posts().
    const std::vector<Due>& posts() const { return posts_; }
    void clear_posts() { posts_.clear(); }
    /// Rates changed so far.
    std::uint64_t rate_changes() const { return rate_changes_; }

private:
    void apply_changes(Picoseconds now);
    void post(const Due& due) {
        if (due.is_posted) posts_.push_back(due);
    }

    Activities<Bytes> activities_;
    LinkShare share_;
    std::vector<FlowId> flow_of_;          ///< by activity
    std::vector<ActivityId> activity_of_;  ///< by flow
    std::vector<Due> posts_;
    std::uint64_t rate_changes_ = 0;
};

}  // namespace lockstep::sim
