#include "sim/link_share.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::sim {

namespace {
// A link counts as full within this relative distance: sums of shares are rounded.
constexpr double tolerance = 1e-12;

void require_positive(Bandwidth rate, const char* what) {
    if (!(rate.value > 0)) throw LogicError(fmt::format("{} of {} B/s (must be above 0)", what, rate.value));
}
}  // namespace

SharedLinkId LinkShare::add_link(Bandwidth capacity) {
    require_positive(capacity, "a shared link");
    links_.emplace_back();
    links_.back().capacity = capacity.value;
    return {static_cast<std::int32_t>(links_.size() - 1)};
}

void LinkShare::set_capacity(SharedLinkId link, Bandwidth capacity) {
    require_positive(capacity, "a shared link");
    links_[link.index()].capacity = capacity.value;
    const LinkUse seed{link, 1};
    gather({&seed, 1});
    solve();
}

FlowId LinkShare::add_flow(Bandwidth cap, std::span<const LinkUse> uses) {
    require_positive(cap, "a flow cap");
    FlowId id;
    if (free_.empty()) {
        id = {static_cast<std::int32_t>(flows_.size())};
        flows_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    FlowState& flow = flows_[id.index()];
    flow.cap = cap.value;
    flow.rate = 0;
    flow.is_alive = true;
    flow.uses.assign(uses.begin(), uses.end());
    for (const LinkUse& use : uses) links_[use.link.index()].flows.push_back(id);
    if (uses.empty()) {
        flow.rate = flow.cap;
        report(id, 0);
        return id;
    }
    gather(flow.uses);
    solve();
    return id;
}

void LinkShare::remove_flow(FlowId id) {
    FlowState& flow = flows_[id.index()];
    for (const LinkUse& use : flow.uses) {
        auto& on_link = links_[use.link.index()].flows;
        const auto place = std::find(on_link.begin(), on_link.end(), id);
        *place = on_link.back();
        on_link.pop_back();
    }
    flow.is_alive = false;
    free_.push_back(id);
    if (flow.uses.empty()) return;
    gather(flow.uses);
    solve();
}

const std::vector<FlowId>& LinkShare::take_changed() {
    taken_.clear();
    for (FlowId id : changed_) {
        flows_[id.index()].is_changed = false;
        if (flows_[id.index()].is_alive) taken_.push_back(id);
    }
    changed_.clear();
    return taken_;
}

/// Fills component_ and members_ with all links and flows joined to the seed links.
void LinkShare::gather(std::span<const LinkUse> seeds) {
    ++mark_;
    component_.clear();
    members_.clear();
    auto reach = [this](SharedLinkId id) {
        LinkState& link = links_[id.index()];
        if (link.mark == mark_) return;
        link.mark = mark_;
        link.left = link.capacity;
        link.rising = 0;
        link.rising_flows = 0;
        component_.push_back(id);
    };
    for (const LinkUse& use : seeds) reach(use.link);
    for (std::size_t i = 0; i < component_.size(); ++i) {
        for (FlowId id : links_[component_[i].index()].flows) {
            FlowState& flow = flows_[id.index()];
            if (flow.mark == mark_) continue;
            flow.mark = mark_;
            members_.push_back(id);
            for (const LinkUse& use : flow.uses) {
                reach(use.link);
                links_[use.link.index()].rising += use.share;
                ++links_[use.link.index()].rising_flows;
            }
        }
    }
}

/// The level at which the next link is full.
double LinkShare::next_level() const {
    double level = std::numeric_limits<double>::infinity();
    for (SharedLinkId id : component_) {
        const LinkState& link = links_[id.index()];
        if (link.rising_flows > 0) level = std::min(level, std::max(link.left, 0.0) / link.rising);
    }
    return level;
}

void LinkShare::freeze(FlowState& flow, double rate) {
    flow.rate = rate;
    for (const LinkUse& use : flow.uses) {
        LinkState& link = links_[use.link.index()];
        link.left -= rate * use.share;
        link.rising -= use.share;
        --link.rising_flows;
    }
}

/// Progressive filling over the gathered component.
void LinkShare::solve() {
    old_rates_.clear();
    for (FlowId id : members_) old_rates_.push_back(flows_[id.index()].rate);
    rising_ = members_;
    double level = 0;
    while (!rising_.empty()) {
        const double full = next_level();
        double least_cap = std::numeric_limits<double>::infinity();
        for (FlowId id : rising_) least_cap = std::min(least_cap, flows_[id.index()].cap);
        level = std::max(level, std::min(full, least_cap));  // levels only rise; rounding must not lower one
        const double bound = level * (1 + tolerance);
        // Which links are full at this level is decided before any flow is frozen.
        for (SharedLinkId id : component_) {
            LinkState& link = links_[id.index()];
            const bool is_full = link.rising_flows > 0 && link.left <= bound * link.rising;
            link.mark = is_full ? mark_ + 1 : mark_;
        }
        auto keep = rising_.begin();
        for (FlowId id : rising_) {
            FlowState& flow = flows_[id.index()];
            const bool is_stopped = std::any_of(flow.uses.begin(), flow.uses.end(), [this](const LinkUse& use) {
                return links_[use.link.index()].mark == mark_ + 1;
            });
            if (flow.cap <= bound)
                freeze(flow, flow.cap);
            else if (is_stopped)
                freeze(flow, level);
            else
                *keep++ = id;
        }
        rising_.erase(keep, rising_.end());
    }
    ++mark_;
    for (std::size_t i = 0; i < members_.size(); ++i) report(members_[i], old_rates_[i]);
}

void LinkShare::report(FlowId id, double old_rate) {
    FlowState& flow = flows_[id.index()];
    if (flow.rate == old_rate || flow.is_changed) return;
    flow.is_changed = true;
    changed_.push_back(id);
}

}  // namespace lockstep::sim
