// How long a collective or a message takes alone on its wires, as NCCL's algorithms move the bytes.
#pragma once

#include "cost/collective_candidates.hpp"
#include "cost/wires.hpp"
#include "step/durations.hpp"

namespace lockstep::cost {

/// Bytes of the whole buffer as nccl-tests counts them: count x element for all_reduce and broadcast; n times that for
/// reduce_scatter, all_gather and all_to_all (whose NCCL count is per rank or pair).
Bytes buffer_bytes(const step::Collective& collective, int ranks);

/// The fastest of the algorithms and protocols that `wires` offer, or what is forced of them. With n ranks on k nodes,
/// m on one, S = buffer_bytes, channels C and network N (see Wires), link calibration l, network efficiency e, base b,
/// hops h (in the node) and H = network_per_hop + latency:
///     ring          b + s (h or H) + f S / min(C l, N e)
///       all_reduce      s = 2(n-1), 2(k-1) of them between nodes; f = 2(n-1)/n
///       reduce_scatter, all_gather   s = n-1, k-1 of them between nodes; f = (n-1)/n
///       broadcast       s = n-1, k-1 of them between nodes; f = 1 (pipelined)
///     tree          all_reduce: b + 2((n/k - 1) h + ceil(log2 k) H) + 2 S / min(C l, N e)
///     nvls          all_reduce: b + 25 us + 2 ceil(log2 k) H + 2(n-1)/n S / min(nvls_bandwidth, N e, twice for k = 2)
///     all_to_all    b + h or H + max(S/n pair_seconds_per_byte / min(l, 1), (n - n/k) m S/n / (N e))
/// The calibration is that of ring and simple. For the others, as NCCL has them (cost/nccl_constants.hpp): b moves by
/// the difference of bases, h and network_per_hop go by the ratio of hops, the rate by protocol_share and for ll at
/// most most_ll. A forced algorithm that a collective doesn't have, or a protocol that a communicator doesn't offer, is
/// left to the fastest. Left out of NCCL's model: its limits by channel and its correction tables for trees (they rank,
/// and are not physics), CollNet and PAT. Sources: Thakur, Rabenseifner, Gropp 2005 (ring); Sanders, Speck, Traff 2009
/// (double tree); NCCL 2.30.7 src/graph/tuning.cc. The transfer is never below wire_bound. One rank: nothing to do.
CollectiveChoice choose_collective(const machine::Calibration& calibration, const Wires& wires,
                                   step::CollectiveKind kind, Bytes buffer);

/// Its time.
step::CommunicationTime collective_time(const machine::Calibration& calibration, const Wires& wires,
                                        step::CollectiveKind kind, Bytes buffer);

/// No algorithm moves the buffer faster: what a rank (and a node) must at least send or receive, over its wires.
/// all_reduce S/C (a switch may add up; without one 2(n-1)/n S/C) and 2(k-1)/k S/N; reduce_scatter, all_gather
/// (m-1)/m S/C (m local ranks of n) and (k-1)/k S/N; broadcast S/C, S/N; all_to_all as above with l = e = 1.
Seconds wire_bound(const Wires& wires, step::CollectiveKind kind, Bytes buffer);

/// The rate of wire_bytes at which a large collective runs alone.
Bandwidth full_rate(const machine::Calibration& calibration, const Wires& wires, step::CollectiveKind kind);

/// One message of rank `from`: b + h + S / (route l) inside a node, b + H + S / (network rate e) between nodes.
step::CommunicationTime message_time(const machine::Machine& machine, const machine::Placement& placement,
                                     const MessageWire& wire, int from, Bytes bytes);
/// The same, of a pair of ranks.
step::CommunicationTime message_time(const machine::Machine& machine, const machine::Placement& placement, int from,
                                     int to, Bytes bytes);

}  // namespace lockstep::cost
