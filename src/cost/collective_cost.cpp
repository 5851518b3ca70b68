#include "cost/collective_cost.hpp"

#include <algorithm>

namespace lockstep::cost {

namespace {

using step::CollectiveKind;
using step::CommunicationTime;

using machine::CollectiveAlgorithm;
using machine::CollectiveProtocol;

double real(int n) { return static_cast<double>(n); }

Seconds network_hop(const machine::Calibration& c, const Wires& w) { return c.network_per_hop + w.network_latency; }

Seconds all_to_all_transfer(const Wires& w, Bytes buffer, double channel_share, double network_share) {
    const Bytes pair = buffer / real(w.ranks);
    Seconds time{pair.value * w.pair_seconds_per_byte / channel_share};
    if (w.nodes > 1) {
        const double leaving = real(w.local_ranks) * real(w.ranks - w.local_ranks);
        time = std::max(time, leaving * pair / (w.network * network_share));
    }
    return time;
}

CommunicationTime all_to_all_time(const machine::Calibration& c, const Wires& w, Bytes buffer) {
    return {c.collective_base + (w.nodes > 1 ? network_hop(c, w) : c.per_hop),
            all_to_all_transfer(w, buffer, std::min(c.link, 1.0), c.network),
            wire_bytes(CollectiveKind::all_to_all, w.ranks, buffer)};
}

Seconds total(const CommunicationTime& t) { return t.latency + t.transfer; }

}  // namespace

Bytes buffer_bytes(const step::Collective& collective, int ranks) {
    const Bytes counted = static_cast<double>(collective.count) * size_of(collective.dtype);
    const bool is_whole = collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::broadcast;
    return is_whole ? counted : counted * real(ranks);
}

Seconds wire_bound(const Wires& w, CollectiveKind kind, Bytes buffer) {
    if (w.ranks < 2) return Seconds{0};
    if (kind == CollectiveKind::all_to_all) return all_to_all_transfer(w, buffer, 1, 1);
    const bool is_split = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
    const double inside = is_split ? real(w.local_ranks - 1) / real(w.local_ranks) : 1;
    const double node_part = real(w.nodes - 1) / real(w.nodes);
    const double between = kind == CollectiveKind::all_reduce ? 2 * node_part : is_split ? node_part : 1;
    Seconds bound;
    if (w.local_ranks > 1) bound = inside * buffer / w.channels;
    if (w.nodes > 1) bound = std::max(bound, between * buffer / w.network);
    return bound;
}

CollectiveChoice choose_collective(const machine::Calibration& calibration, const Wires& wires, CollectiveKind kind,
                                   Bytes buffer) {
    if (wires.ranks < 2) return {};
    if (kind == CollectiveKind::all_to_all)
        return {CollectiveAlgorithm::ring, CollectiveProtocol::simple, all_to_all_time(calibration, wires, buffer)};
    const auto all = candidates(calibration, wires, kind, buffer);
    auto best = *std::ranges::min_element(all, {}, [](const CollectiveChoice& one) { return total(one.time); });
    best.time.transfer = std::max(best.time.transfer, wire_bound(wires, kind, buffer));
    best.time.wire = wire_bytes(kind, wires.ranks, buffer);
    return best;
}

CommunicationTime collective_time(const machine::Calibration& calibration, const Wires& wires, CollectiveKind kind,
                                  Bytes buffer) {
    return choose_collective(calibration, wires, kind, buffer).time;
}

Bandwidth full_rate(const machine::Calibration& calibration, const Wires& w, CollectiveKind kind) {
    const CommunicationTime large = choose_collective(calibration, w, kind, Bytes{1e12}).time;
    return large.wire / large.transfer;
}

CommunicationTime message_time(const machine::Machine& machine, const machine::Placement& placement,
                               const MessageWire& wire, int from, Bytes bytes) {
    const machine::Calibration& c = machine.calibration_of(placement.node_of(from));
    if (!wire.is_between_nodes)
        return {c.collective_base + c.per_hop, bytes / (wire.rate * std::min(c.link, 1.0)), bytes};
    return {c.collective_base + c.network_per_hop + machine.network->latency, bytes / (wire.rate * c.network), bytes};
}

CommunicationTime message_time(const machine::Machine& machine, const machine::Placement& placement, int from, int to,
                               Bytes bytes) {
    if (from == to) return {};
    const Fabric fabric(machine, placement);
    return message_time(machine, placement, find_message_wire(fabric, machine, placement, from, to), from, bytes);
}

}  // namespace lockstep::cost
