#include "cost/nccl_constants.hpp"

#include "base/error.hpp"

namespace lockstep::cost {

namespace {

using machine::CollectiveAlgorithm;
using machine::CollectiveProtocol;

struct ByProtocol {
    double ll, ll128, simple;  ///< microseconds

    Seconds of(CollectiveProtocol protocol) const {
        switch (protocol) {
            case CollectiveProtocol::ll: return Seconds{ll * 1e-6};
            case CollectiveProtocol::ll128: return Seconds{ll128 * 1e-6};
            case CollectiveProtocol::simple: return Seconds{simple * 1e-6};
        }
        throw LogicError("unknown protocol of a collective");
    }
};

ByProtocol ring_hops(HopKind kind) {
    switch (kind) {
        case HopKind::nvlink: return {0.6, 1.9, 3.4};
        case HopKind::pcie: return {1.0, 2.5, 5.7};
        case HopKind::network: return {2.7, 4.0, 14.0};
    }
    throw LogicError("unknown kind of hop");
}

ByProtocol tree_hops(HopKind kind) {
    switch (kind) {
        case HopKind::nvlink: return {0.6, 1.25, 4.0};
        case HopKind::pcie: return {1.0, 1.9, 4.0};
        case HopKind::network: return {5.0, 8.5, 14.0};
    }
    throw LogicError("unknown kind of hop");
}

}  // namespace

GpuGeneration generation_of(const machine::Device& device) {
    const int major = machine::capability_major(device);
    if (major >= 10) return GpuGeneration::blackwell;
    if (major == 9) return GpuGeneration::hopper;
    return major == 8 ? GpuGeneration::ampere : GpuGeneration::volta;
}

Seconds nccl_base(CollectiveAlgorithm algorithm, CollectiveProtocol protocol) {
    switch (algorithm) {
        case CollectiveAlgorithm::ring: return ByProtocol{6.6, 14.0, 8.4}.of(protocol);
        case CollectiveAlgorithm::tree: return ByProtocol{6.8, 14.0, 8.4}.of(protocol);
        case CollectiveAlgorithm::nvls: return Seconds{0};
    }
    throw LogicError("unknown algorithm of a collective");
}

Seconds nccl_hop(CollectiveAlgorithm algorithm, CollectiveProtocol protocol, HopKind kind) {
    switch (algorithm) {
        case CollectiveAlgorithm::ring: return ring_hops(kind).of(protocol);
        case CollectiveAlgorithm::tree: return tree_hops(kind).of(protocol);
        case CollectiveAlgorithm::nvls: return Seconds{kind == HopKind::network ? 20.9e-6 : 25e-6};
    }
    throw LogicError("unknown algorithm of a collective");
}

double protocol_share(CollectiveAlgorithm algorithm, CollectiveProtocol protocol, int nodes) {
    if (algorithm == CollectiveAlgorithm::ring)
        return protocol == CollectiveProtocol::ll ? 0.5 : protocol == CollectiveProtocol::ll128 ? 0.92 : 1;
    if (algorithm == CollectiveAlgorithm::nvls) return 1;
    const double tree = 0.92;
    if (protocol == CollectiveProtocol::ll) return tree / 3.8;
    return protocol == CollectiveProtocol::ll128 ? tree * (nodes == 1 ? 7.0 / 9 : 120.0 / 128) : tree;
}

Bandwidth most_ll(GpuGeneration generation, int nodes) {
    constexpr double rates[4][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};  // GB/s
    return Bandwidth{rates[static_cast<int>(generation)][nodes == 1 ? 0 : nodes == 2 ? 1 : 2] * 1e9};
}

Bandwidth nvls_bandwidth(GpuGeneration generation, Bandwidth port, int local_ranks) {
    const bool is_hopper = generation == GpuGeneration::hopper;
    const double efficiency = is_hopper ? 0.85 : 0.74;
    const double laid = is_hopper ? 8 * 40.0 / 450 : 8 * 90.0 / 900;
    return 2 * efficiency * laid * (static_cast<double>(local_ranks - 1) / local_ranks) * port;
}

}  // namespace lockstep::cost
