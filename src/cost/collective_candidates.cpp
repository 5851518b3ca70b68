#include "cost/collective_candidates.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.hpp"
#include "cost/nccl_constants.hpp"

namespace lockstep::cost {

namespace {

using machine::CollectiveAlgorithm;
using machine::CollectiveProtocol;
using step::CollectiveKind;

double real(int n) { return static_cast<double>(n); }

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

/// Calibrated ring and simple, or as far from it as NCCL says; see choose_collective.
class Candidate {
public:
    Candidate(const machine::Calibration& c, const Wires& w, CollectiveAlgorithm algorithm, CollectiveProtocol protocol)
        : c_(c), w_(w), algorithm_(algorithm), protocol_(protocol) {}

    CollectiveChoice ring(CollectiveKind kind, Bytes buffer) const {
        const RingShape shape = ring_shape(kind, w_.ranks);
        const double far = shape.passes * real(w_.nodes - 1);
        const double near = shape.passes * real(w_.ranks - 1) - far;
        return choice(base() + near * near_hop() + far * far_hop(), shape.factor * buffer / bus());
    }

    /// Double tree between nodes, chains inside them.
    CollectiveChoice tree(Bytes buffer) const {
        const double levels = w_.nodes > 1 ? tree_levels() : 0;
        return choice(base() + 2 * (real(w_.local_ranks - 1) * near_hop() + levels * far_hop()), 2 * buffer / bus());
    }

    /// Switches add up inside nodes; between them a tree, which two nodes use in both directions at once.
    CollectiveChoice nvls(Bytes buffer) const {
        Bandwidth rate = nvls_bandwidth(w_.offer.generation, w_.channels, w_.local_ranks);
        Seconds latency = base() + nccl_hop(algorithm_, protocol_, HopKind::nvlink);
        if (w_.nodes > 1) {
            latency += 2 * tree_levels() * far_hop();
            rate = std::min(rate, w_.network * c_.network * (w_.nodes == 2 ? 2 : 1));
        }
        return choice(latency, 2 * real(w_.ranks - 1) / real(w_.ranks) * buffer / rate);
    }

private:
    CollectiveChoice choice(Seconds latency, Seconds transfer) const {
        return {algorithm_, protocol_, {latency, transfer, {}}};
    }

    double tree_levels() const {
        return real(std::bit_width(static_cast<unsigned>(w_.nodes - 1)));  // ceil(log2 nodes)
    }

    Seconds base() const {
        if (!w_.offer.has_protocols) return c_.collective_base;
        const Seconds more =
            nccl_base(algorithm_, protocol_) - nccl_base(CollectiveAlgorithm::ring, CollectiveProtocol::simple);
        return std::max(c_.collective_base + more, Seconds{0});
    }

    /// NCCL's hop over its hop of ring and simple.
    double ratio(HopKind kind) const {
        if (!w_.offer.has_protocols) return 1;
        return nccl_hop(algorithm_, protocol_, kind) /
               nccl_hop(CollectiveAlgorithm::ring, CollectiveProtocol::simple, kind);
    }

    Seconds near_hop() const {
        const Seconds hop = ratio(w_.offer.is_on_nvlink ? HopKind::nvlink : HopKind::pcie) * c_.per_hop;
        const bool waits = w_.nodes > 1 && protocol_ != CollectiveProtocol::simple;
        return waits ? std::max(hop, network_overhead) : hop;
    }

    Seconds far_hop() const { return ratio(HopKind::network) * c_.network_per_hop + w_.network_latency; }

    Bandwidth bus() const {
        const Bandwidth simple = narrowest(w_, c_.link, c_.network);
        if (!w_.offer.has_protocols) return simple;
        const Bandwidth rate = protocol_share(algorithm_, protocol_, w_.nodes) * simple;
        if (protocol_ != CollectiveProtocol::ll) return rate;
        return std::min(rate, most_ll(w_.offer.generation, w_.nodes));
    }

    const machine::Calibration& c_;
    const Wires& w_;
    CollectiveAlgorithm algorithm_;
    CollectiveProtocol protocol_;
};

std::vector<CollectiveAlgorithm> algorithms_of(CollectiveKind kind, const Wires& w) {
    std::vector<CollectiveAlgorithm> all{CollectiveAlgorithm::ring};
    if (kind != CollectiveKind::all_reduce) return all;
    if (w.nodes > 1 || w.offer.has_protocols) all.push_back(CollectiveAlgorithm::tree);
    if (w.offer.has_nvls) all.push_back(CollectiveAlgorithm::nvls);
    const auto forced = w.offer.forced.algorithm;
    if (forced && std::ranges::find(all, *forced) != all.end()) return {*forced};
    return all;
}

std::vector<CollectiveProtocol> protocols_of(CollectiveAlgorithm algorithm, const Wires& w) {
    if (!w.offer.has_protocols || algorithm == CollectiveAlgorithm::nvls) return {CollectiveProtocol::simple};
    std::vector<CollectiveProtocol> all{CollectiveProtocol::simple, CollectiveProtocol::ll};
    if (w.offer.has_ll128) all.push_back(CollectiveProtocol::ll128);
    const auto forced = w.offer.forced.protocol;
    if (forced && std::ranges::find(all, *forced) != all.end()) return {*forced};
    return all;
}

CollectiveChoice candidate(const machine::Calibration& c, const Wires& w, CollectiveKind kind, Bytes buffer,
                           CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
    const Candidate of(c, w, algorithm, protocol);
    switch (algorithm) {
        case CollectiveAlgorithm::ring: return of.ring(kind, buffer);
        case CollectiveAlgorithm::tree: return of.tree(buffer);
        case CollectiveAlgorithm::nvls: return of.nvls(buffer);
    }
    throw LogicError("unknown algorithm of a collective");
}

}  // namespace

Bytes wire_bytes(CollectiveKind kind, int ranks, Bytes buffer) {
    if (ranks < 2) return {};
    if (kind == CollectiveKind::all_to_all) return buffer * (real(ranks - 1) / real(ranks));
    return ring_shape(kind, ranks).factor * buffer;
}

std::string to_string(const CollectiveChoice& choice) {
    return std::string(machine::to_string(choice.algorithm)) + " " + std::string(machine::to_string(choice.protocol));
}

std::vector<CollectiveChoice> candidates(const machine::Calibration& calibration, const Wires& wires,
                                         CollectiveKind kind, Bytes buffer) {
    std::vector<CollectiveChoice> all;
    for (const auto algorithm : algorithms_of(kind, wires))
        for (const auto protocol : protocols_of(algorithm, wires))
            all.push_back(candidate(calibration, wires, kind, buffer, algorithm, protocol));
    return all;
}

}  // namespace lockstep::cost
