// Links shared max-min fair by the flows on them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"

namespace lockstep::sim {

struct SharedLink;
using SharedLinkId = Id<SharedLink>;
struct Flow;
using FlowId = Id<Flow>;

/// A flow puts `share` bytes on the link for each byte of its own.
struct LinkUse {
    SharedLinkId link;
    double share = 1;
};

/// Rates of flows x_f with caps c_f on links of capacity C_l:
///     sum over f of share_fl x_f <= C_l for each link l,    x_f <= c_f,
/// max-min fair: no x_f can grow without a smaller or equal x_g shrinking. Solved by progressive filling (Bertsekas and
/// Gallager, Data Networks, 6.5.2): all rates rise together; a flow stops at its cap or when one of its links is full.
/// A change re-solves only the flows joined to it by links.
class LinkShare {
public:
    /// A link of `capacity` (above 0), one direction. Throws LogicError otherwise.
    SharedLinkId add_link(Bandwidth capacity);
    void set_capacity(SharedLinkId link, Bandwidth capacity);

    /// A flow limited to `cap` (above 0); each link at most once. Without links it runs at its cap.
    FlowId add_flow(Bandwidth cap, std::span<const LinkUse> uses);
    void remove_flow(FlowId flow);
    Bandwidth rate(FlowId flow) const { return Bandwidth{flows_[flow.index()].rate}; }

    /// Flows whose rate differs since the last call (among those still there), in the order they were found.
    const std::vector<FlowId>& take_changed();

private:
    struct FlowState {
        double cap = 0;
        double rate = 0;
        std::vector<LinkUse> uses;
        std::uint64_t mark = 0;  ///< of the last solve that reached it
        bool is_alive = false;
        bool is_changed = false;
    };
    struct LinkState {
        double capacity = 0;
        double left = 0;    ///< capacity not yet given out
        double rising = 0;  ///< shares of the flows still rising
        int rising_flows = 0;
        std::vector<FlowId> flows;
        std::uint64_t mark = 0;
    };

    void gather(std::span<const LinkUse> seeds);
    void solve();
    double next_level() const;
    void freeze(FlowState& flow, double rate);
    void report(FlowId id, double old_rate);

    std::vector<FlowState> flows_;
    std::vector<LinkState> links_;
    std::vector<FlowId> free_;
    std::uint64_t mark_ = 0;
    std::vector<FlowId> members_;  ///< of the component being solved
    std::vector<SharedLinkId> component_;
    std::vector<double> old_rates_;
    std::vector<FlowId> rising_;
    std::vector<FlowId> changed_;
    std::vector<FlowId> taken_;
};

}  // namespace lockstep::sim
