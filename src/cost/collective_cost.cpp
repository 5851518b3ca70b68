#include "cost/collective_cost.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace lockstep::cost {

namespace {

using step::CollectiveKind;
using step::CommunicationTime;

/// Share of the wire rate of NICs that large collectives reach: 8 x 200 Gb/s 192 of 200 GB/s, 8 x 400 Gb/s 380 of 400
/// (NVIDIA, NCCL slides), 4 x 200 Gb/s 86 of 100 (nccl-tests log, two nodes); their mean.
constexpr double network_efficiency = 0.92;

double real(int n) { return static_cast<double>(n); }

Seconds network_hop(const machine::Calibration& c, const Wires& w) { return c.network_per_hop + w.network_latency; }

/// The slower of the channels and the network, as far as they are used.
Bandwidth narrowest(const Wires& w, double channel_share, double network_share) {
    Bandwidth rate{std::numeric_limits<double>::infinity()};
    if (w.local_ranks > 1) rate = std::min(rate, w.channels * channel_share);
    if (w.nodes > 1) rate = std::min(rate, w.network * network_share);
    return rate;
}

struct RingShape {
    double passes = 1;  ///< times around the ring
    double factor = 1;  ///< bytes on each channel set over the buffer
};

RingShape ring_shape(CollectiveKind kind, int n) {
    const double part = real(n - 1) / real(n);
    switch (kind) {
        case CollectiveKind::all_reduce: return {2, 2 * part};
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather: return {1, part};
        case CollectiveKind::broadcast:
        case CollectiveKind::all_to_all: break;
    }
    return {1, 1};
}

CommunicationTime ring_time(const machine::Calibration& c, const Wires& w, CollectiveKind kind, Bytes buffer) {
    const RingShape shape = ring_shape(kind, w.ranks);
    const double far = shape.passes * real(w.nodes - 1);
    const double near = shape.passes * real(w.ranks - 1) - far;
    return {c.collective_base + near * c.per_hop + far * network_hop(c, w),
            shape.factor * buffer / narrowest(w, c.link, network_efficiency), shape.factor * buffer};
}

CommunicationTime tree_time(const machine::Calibration& c, const Wires& w, Bytes buffer) {
    const double levels = real(std::bit_width(static_cast<unsigned>(w.nodes - 1)));  // ceil(log2 nodes)
    return {c.collective_base + 2 * (real(w.local_ranks - 1) * c.per_hop + levels * network_hop(c, w)),
            2 * buffer / narrowest(w, c.link, network_efficiency),
            wire_bytes(CollectiveKind::all_reduce, w.ranks, buffer)};
}

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
            all_to_all_transfer(w, buffer, std::min(c.link, 1.0), network_efficiency),
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

CommunicationTime collective_time(const machine::Calibration& calibration, const Wires& wires, CollectiveKind kind,
                                  Bytes buffer) {
    if (wires.ranks < 2) return {};
    if (kind == CollectiveKind::all_to_all) return all_to_all_time(calibration, wires, buffer);
    CommunicationTime best = ring_time(calibration, wires, kind, buffer);
    if (kind == CollectiveKind::all_reduce && wires.nodes > 1) {
        const CommunicationTime tree = tree_time(calibration, wires, buffer);
        if (total(tree) < total(best)) best = tree;
    }
    best.transfer = std::max(best.transfer, wire_bound(wires, kind, buffer));
    return best;
}

Bytes wire_bytes(CollectiveKind kind, int ranks, Bytes buffer) {
    if (ranks < 2) return {};
    if (kind == CollectiveKind::all_to_all) return buffer * (real(ranks - 1) / real(ranks));
    return ring_shape(kind, ranks).factor * buffer;
}

Bandwidth full_rate(const machine::Calibration& calibration, const Wires& w, CollectiveKind kind) {
    if (kind != CollectiveKind::all_to_all) return narrowest(w, calibration.link, network_efficiency);
    const Bytes buffer{1e9};
    return wire_bytes(kind, w.ranks, buffer) /
           all_to_all_transfer(w, buffer, std::min(calibration.link, 1.0), network_efficiency);
}

CommunicationTime message_time(const machine::Machine& machine, const machine::Placement& placement,
                               const MessageWire& wire, int from, Bytes bytes) {
    const machine::Calibration& c = machine.calibration_of(placement.node_of(from));
    if (!wire.is_between_nodes)
        return {c.collective_base + c.per_hop, bytes / (wire.rate * std::min(c.link, 1.0)), bytes};
    return {c.collective_base + c.network_per_hop + machine.network->latency, bytes / (wire.rate * network_efficiency),
            bytes};
}

CommunicationTime message_time(const machine::Machine& machine, const machine::Placement& placement, int from, int to,
                               Bytes bytes) {
    if (from == to) return {};
    const Fabric fabric(machine, placement);
    return message_time(machine, placement, find_message_wire(fabric, machine, placement, from, to), from, bytes);
}

}  // namespace lockstep::cost
