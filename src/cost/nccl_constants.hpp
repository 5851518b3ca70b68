// The constants of NCCL's own cost model that tell its algorithms and protocols apart.
#pragma once

#include "base/units.hpp"
#include "machine/collective_choice.hpp"
#include "machine/device.hpp"

namespace lockstep::cost {

/// Rows of NCCL's tables; by compute capability 7, 8, 9 and 10 on.
enum class GpuGeneration { volta, ampere, hopper, blackwell };
GpuGeneration generation_of(const machine::Device& device);

enum class HopKind { nvlink, pcie, network };

/// What NCCL 2.30.7 (src/graph/tuning.cc, tables baseLat and hwLat) counts for an algorithm and protocol; ring and
/// simple are what machine::Calibration measures, all others follow by their distance or ratio to it.
Seconds nccl_base(machine::CollectiveAlgorithm algorithm, machine::CollectiveProtocol protocol);
Seconds nccl_hop(machine::CollectiveAlgorithm algorithm, machine::CollectiveProtocol protocol, HopKind kind);

/// Share of the bus bandwidth of ring and simple: rings ll 0.5 (4 of 8 bytes are flags), ll128 0.92; trees 0.92, of
/// which ll reaches 1/3.8 and ll128 7/9 in one node and 120/128 between nodes; nvls by nvls_bandwidth.
double protocol_share(machine::CollectiveAlgorithm algorithm, machine::CollectiveProtocol protocol, int nodes);

/// Most bus bandwidth of ll on 1, 2 and more nodes (table llMaxBw).
Bandwidth most_ll(GpuGeneration generation, int nodes);

/// Bus bandwidth of an all_reduce by the switches of one node whose GPUs have ports of rate `port` and n of which take
/// part: 2 (n-1)/n e v port. e = 0.85 (Hopper) or 0.74 (Blackwell): table nvlsEfficiency; v: what NCCL's search lays on
/// a port, 8 x 40 of 450 GB/s (H100) and 8 x 90 of 900 GB/s (B200).
Bandwidth nvls_bandwidth(GpuGeneration generation, Bandwidth port, int local_ranks);

/// Least time of a step inside a node while a network is used too (netOverhead of an Intel host), of ll and ll128.
inline constexpr Seconds network_overhead{1e-6};

}  // namespace lockstep::cost
