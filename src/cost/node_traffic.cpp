#include "cost/node_traffic.hpp"

#include <algorithm>
#include <set>

#include "machine/rings.hpp"
#include "machine/route.hpp"

namespace lockstep::cost {

namespace {

void add(Loads& to, const Loads& loads, double times) {
    for (const step::LinkLoad& load : loads) to.push_back({load.link, load.share * times});
}

/// NVLinks to a switch serve one destination after the other, direct NVLinks work side by side; on PCIe and sockets the
/// link that most routes cross in one direction sets the time.
double seconds_per_pair_byte(const NodeLinks& links, const std::vector<int>& gpus) {
    const machine::Topology& topology = links.topology();
    Loads crossing;
    double longest = 0;
    for (const int from : gpus) {
        const bool is_switched = links.is_switched(from);
        double over_nvlink = 0;
        for (const int to : gpus) {
            if (from == to) continue;
            const machine::Route route = machine::find_route(topology, topology.gpu(from), topology.gpu(to));
            const double alone = 1 / route.bandwidth.value;
            if (route.nvlinks == 0)
                add(crossing, links.hop(from, to), 1);
            else
                over_nvlink = is_switched ? over_nvlink + alone : std::max(over_nvlink, alone);
        }
        longest = std::max(longest, over_nvlink);
    }
    for (const step::LinkLoad& load : merged(std::move(crossing)))
        longest = std::max(longest, load.share / links.capacities()[static_cast<std::size_t>(load.link)].value);
    return longest;
}

/// Each NIC carries the same; of the GPUs beside a NIC each carries its part of that.
void find_ways_out(const NodeLinks& links, const std::vector<int>& gpus, NodeTraffic& traffic) {
    std::set<int> used;
    for (const int gpu : gpus) {
        traffic.nics.push_back(links.nics_of(gpu));
        used.insert(traffic.nics.back().begin(), traffic.nics.back().end());
    }
    for (const int nic : used) {
        const double part = 1 / static_cast<double>(used.size());
        std::vector<int> sharers;
        for (std::size_t i = 0; i < gpus.size(); ++i)
            if (std::ranges::count(traffic.nics[i], nic) > 0) sharers.push_back(gpus[i]);
        traffic.leaving.push_back({links.nic_out(nic), part});
        traffic.entering.push_back({links.nic_in(nic), part});
        for (const int gpu : sharers) {
            add(traffic.leaving, links.to_nic(gpu, nic), part / static_cast<double>(sharers.size()));
            add(traffic.entering, links.from_nic(gpu, nic), part / static_cast<double>(sharers.size()));
        }
    }
    traffic.leaving = merged(std::move(traffic.leaving));
    traffic.entering = merged(std::move(traffic.entering));
}

}  // namespace

NodeTraffic find_traffic(const NodeLinks& links, const std::vector<int>& gpus) {
    NodeTraffic traffic;
    find_ways_out(links, gpus, traffic);
    if (gpus.size() < 2) return traffic;
    const machine::RingChannels channels = machine::find_rings(links.topology(), gpus);
    traffic.channels = channels.total();
    traffic.is_on_nvlink = channels.proximity == machine::Proximity::nvlink;
    traffic.pair_seconds_per_byte = seconds_per_pair_byte(links, gpus);
    const double part = 1 / static_cast<double>(channels.rings.size());
    for (const std::vector<int>& ring : channels.rings)
        for (std::size_t i = 0; i < ring.size(); ++i)
            add(traffic.ring, links.hop(ring[i], ring[(i + 1) % ring.size()]), part);
    for (const int from : gpus)
        for (const int to : gpus)
            if (from != to) add(traffic.pairs, links.hop(from, to), 1);
    traffic.ring = merged(std::move(traffic.ring));
    traffic.pairs = merged(std::move(traffic.pairs));
    return traffic;
}

}  // namespace lockstep::cost
