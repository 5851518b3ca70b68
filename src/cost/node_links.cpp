#include "cost/node_links.hpp"

#include <algorithm>
#include <limits>

#include "machine/route.hpp"

namespace lockstep::cost {

using machine::LinkId;
using machine::LinkKind;
using machine::VertexId;
using machine::VertexKind;

Loads merged(Loads loads) {
    std::ranges::stable_sort(loads, {}, &step::LinkLoad::link);
    Loads result;
    for (const step::LinkLoad& load : loads) {
        if (!result.empty() && result.back().link == load.link)
            result.back().share += load.share;
        else
            result.push_back(load);
    }
    return result;
}

NodeLinks::NodeLinks(const machine::Topology& topology, std::vector<Bandwidth> nics)
    : topology_(topology), nics_(std::move(nics)) {
    std::map<std::pair<VertexId, bool>, std::int32_t> ports;  // of a GPU to its switches: (GPU, is outwards)
    const auto kind = [&](VertexId v) { return topology_.vertices[v.index()].kind; };
    for (const machine::Link& link : topology_.links)
        for (const VertexId left : {link.a, link.b}) {
            const VertexId end = machine::other_end(link, left);
            const bool is_out = kind(left) == VertexKind::gpu && kind(end) == VertexKind::nvswitch;
            const bool is_in = kind(left) == VertexKind::nvswitch && kind(end) == VertexKind::gpu;
            const auto next = static_cast<std::int32_t>(capacities_.size());
            const std::int32_t number =
                is_out || is_in ? ports.try_emplace({is_out ? left : end, is_out}, next).first->second : next;
            if (number == next) capacities_.emplace_back();
            capacities_[static_cast<std::size_t>(number)] += link.per_direction;
            number_.push_back(number);
        }
    first_nic_ = static_cast<std::int32_t>(capacities_.size());
    for (const Bandwidth rate : nics_) capacities_.insert(capacities_.end(), 2, rate);
    find_nics();
}

std::int32_t NodeLinks::directed(LinkId link, VertexId left) const {
    return number_[2 * link.index() + (topology_.links[link.index()].a == left ? 0 : 1)];
}

const Loads& NodeLinks::hop(int from, int to) const {
    const auto [entry, is_new] = hops_.try_emplace({from, to});
    if (is_new) {
        const VertexId a = topology_.gpu(from), b = topology_.gpu(to);
        const machine::Route route = machine::find_route(topology_, a, b);
        entry->second = route.nvlinks > 0 ? nvlink_hop(route, a, b) : path(route, a);
    }
    return entry->second;
}

Bandwidth NodeLinks::hop_rate(int from, int to) const {
    const auto [entry, is_new] = hop_rates_.try_emplace({from, to});
    if (is_new) entry->second = machine::find_route(topology_, topology_.gpu(from), topology_.gpu(to)).bandwidth;
    return entry->second;
}

/// Bundles that join the two directly carry their part each; through switches the ports of both are loaded, and what
/// lies between the switches side by side.
Loads NodeLinks::nvlink_hop(const machine::Route& route, VertexId from, VertexId to) const {
    Loads loads;
    Bandwidth direct, between;
    const auto touches = [&](const machine::Link& link, VertexId v) { return link.a == v || link.b == v; };
    for (const LinkId id : route.links) {
        const machine::Link& link = topology_.links[id.index()];
        if (touches(link, from) && touches(link, to)) direct += link.per_direction;
        if (!touches(link, from) && !touches(link, to)) between += link.per_direction;
    }
    for (const LinkId id : route.links) {
        const machine::Link& link = topology_.links[id.index()];
        if (direct.value > 0) {
            loads.push_back({directed(id, from), link.per_direction / direct});
        } else if (touches(link, from) || touches(link, to)) {
            const std::int32_t port =
                touches(link, from) ? directed(id, from) : directed(id, machine::other_end(link, to));
            if (std::ranges::find(loads, port, &step::LinkLoad::link) == loads.end()) loads.push_back({port, 1});
        } else {
            const bool a_is_near = std::ranges::any_of(route.links, [&](LinkId other) {
                const machine::Link& first = topology_.links[other.index()];
                return touches(first, from) && touches(first, link.a);
            });
            loads.push_back({directed(id, a_is_near ? link.a : link.b), link.per_direction / between});
        }
    }
    return merged(std::move(loads));
}

Loads NodeLinks::path(const machine::Route& route, VertexId from) const {
    Loads loads;
    VertexId at = from;
    for (const LinkId id : route.links) {
        loads.push_back({directed(id, at), 1});
        at = machine::other_end(topology_.links[id.index()], at);
    }
    return merged(std::move(loads));
}

bool NodeLinks::is_switched(int gpu) const {
    const VertexId vertex = topology_.gpu(gpu);
    return std::ranges::any_of(topology_.links_of(vertex), [&](LinkId id) {
        const VertexId end = machine::other_end(topology_.links[id.index()], vertex);
        return topology_.vertices[end.index()].kind == VertexKind::nvswitch;
    });
}

void NodeLinks::find_nics() {
    const int gpus = topology_.gpus(), count = nics();
    nics_of_gpu_.assign(static_cast<std::size_t>(gpus), {});
    has_nic_vertices_ = count > 0 && count == topology_.nics();
    if (count == 0) return;
    const auto share_out = [&](const std::vector<int>& sharers, const std::vector<int>& among) {
        const std::size_t n = sharers.size(), c = among.size();
        for (std::size_t i = 0; i < n; ++i) {
            auto& own = nics_of_gpu_[static_cast<std::size_t>(sharers[i])];
            const std::size_t first = i * c / n, past = std::max((i + 1) * c / n, first + 1);
            for (std::size_t k = first; k < past; ++k) own.push_back(among[k]);
        }
    };
    std::map<std::vector<int>, std::vector<int>> sharers_of;  // GPUs by their nearest NICs
    for (int gpu = 0; gpu < gpus; ++gpu) {
        std::vector<int> nearest;
        std::size_t least = std::numeric_limits<std::size_t>::max();
        for (int nic = 0; nic < count; ++nic) {
            if (!(nics_[static_cast<std::size_t>(nic)].value > 0)) continue;
            std::size_t distance = 0;
            if (has_nic_vertices_) {
                const auto vertex = machine::find_vertex(topology_, VertexKind::nic, nic);
                distance = machine::find_route(topology_, topology_.gpu(gpu), *vertex).links.size();
            }
            if (distance < least) nearest.clear();
            least = std::min(least, distance);
            if (distance == least) nearest.push_back(nic);
        }
        sharers_of[nearest].push_back(gpu);
    }
    for (const auto& [nearest, sharers] : sharers_of) share_out(sharers, nearest);
}

const Loads& NodeLinks::to_nic(int gpu, int nic) const {
    const auto [entry, is_new] = to_nic_.try_emplace({gpu, nic});
    if (!is_new) return entry->second;
    const VertexId from = topology_.gpu(gpu);
    const auto kind = [&](VertexId v) { return topology_.vertices[v.index()].kind; };
    if (!has_nic_vertices_) {  // the GPU's own link is all that is known
        for (const LinkId id : topology_.links_of(from))
            if (topology_.links[id.index()].kind == LinkKind::pcie && entry->second.empty())
                entry->second.push_back({directed(id, from), 1});
        return entry->second;
    }
    const auto vertex = machine::find_vertex(topology_, VertexKind::nic, nic);
    VertexId at = from;
    for (const LinkId id : machine::find_route(topology_, from, *vertex).links) {
        const VertexId end = machine::other_end(topology_.links[id.index()], at);
        if (kind(at) != VertexKind::pcie_switch || kind(end) != VertexKind::pcie_switch)
            entry->second.push_back({directed(id, at), 1});
        at = end;
    }
    entry->second = merged(std::move(entry->second));
    return entry->second;
}

/// The same links the other way.
const Loads& NodeLinks::from_nic(int gpu, int nic) const {
    const auto [entry, is_new] = from_nic_.try_emplace({gpu, nic});
    if (!is_new) return entry->second;
    for (const step::LinkLoad& load : to_nic(gpu, nic)) {
        const auto place = std::ranges::find(number_, load.link);
        const auto index = static_cast<std::size_t>(place - number_.begin());
        entry->second.push_back({number_[index ^ 1], load.share});
    }
    entry->second = merged(std::move(entry->second));
    return entry->second;
}

}  // namespace lockstep::cost
