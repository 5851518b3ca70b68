#include "sim/transfers.hpp"

namespace lockstep::sim {

namespace {
template <class T>
void put(std::vector<T>& table, std::size_t index, T value) {
    if (table.size() <= index) table.resize(index + 1);
    table[index] = value;
}
}  // namespace

void Transfers::set_capacity(SharedLinkId link, Bandwidth capacity, Picoseconds now) {
    share_.set_capacity(link, capacity);
    apply_changes(now);
}

ActivityId Transfers::start(Bytes work, Bandwidth cap, std::span<const LinkUse> uses, Picoseconds now) {
    const FlowId flow = share_.add_flow(cap, uses);
    const Due due = activities_.start(work, share_.rate(flow), now);
    put(flow_of_, due.id.index(), flow);
    put(activity_of_, flow.index(), due.id);
    post(due);
    apply_changes(now);
    return due.id;
}

Transfers::Outcome Transfers::fire(ActivityId id, std::uint32_t version, Picoseconds now) {
    const auto fired = activities_.fire(id, version, now);
    if (fired.outcome == Outcome::postponed) post(fired.due);
    if (fired.outcome == Outcome::done) {
        share_.remove_flow(flow_of_[id.index()]);
        apply_changes(now);
    }
    return fired.outcome;
}

void Transfers::apply_changes(Picoseconds now) {
    for (FlowId flow : share_.take_changed()) {
        ++rate_changes_;
        post(activities_.set_rate(activity_of_[flow.index()], share_.rate(flow), now));
    }
}

}  // namespace lockstep::sim
