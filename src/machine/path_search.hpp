// Shortest paths over the links of a topology.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "machine/topology.hpp"

namespace lockstep::machine {

using Path = std::optional<std::vector<LinkId>>;

/// The links of each vertex, found once for one search.
class Graph {
public:
    explicit Graph(const Topology& topology) : topology_(topology), links_(topology.vertices.size()) {
        for (std::size_t i = 0; i < topology.links.size(); ++i) {
            links_[topology.links[i].a.index()].push_back({static_cast<std::int32_t>(i)});
            links_[topology.links[i].b.index()].push_back({static_cast<std::int32_t>(i)});
        }
    }

    const std::vector<LinkId>& links(VertexId v) const { return links_[v.index()]; }
    const Link& link(LinkId id) const { return topology_.links[id.index()]; }
    VertexKind kind(VertexId v) const { return topology_.vertices[v.index()].kind; }
    std::size_t size() const { return links_.size(); }

    /// The path of fewest links whose links satisfy `may_use` and whose inner vertices satisfy `may_pass`; among equal
    /// ones the widest, then the one found first. It ends at the first vertex that satisfies `is_goal`.
    template <class MayUse, class MayPass, class IsGoal>
    Path shortest(VertexId from, MayUse may_use, MayPass may_pass, IsGoal is_goal) const {
        struct Reached {
            int distance = -1;
            Bandwidth width{std::numeric_limits<double>::infinity()};
            LinkId by;
        };
        std::vector<Reached> reached(size());
        std::vector<VertexId> queue{from};
        reached[from.index()].distance = 0;
        for (std::size_t next = 0; next < queue.size(); ++next) {
            const VertexId v = queue[next];
            if (is_goal(v)) return trace(from, v, [&](VertexId at) { return reached[at.index()].by; });
            if (v != from && !may_pass(v)) continue;
            for (const LinkId id : links(v)) {
                if (!may_use(link(id))) continue;
                const VertexId w = other_end(link(id), v);
                Reached& there = reached[w.index()];
                const Bandwidth width = std::min(reached[v.index()].width, link(id).per_direction);
                const int distance = reached[v.index()].distance + 1;
                if (there.distance < 0) queue.push_back(w);
                if (there.distance < 0 || (there.distance == distance && width > there.width))
                    there = {distance, width, id};
            }
        }
        return std::nullopt;
    }

private:
    template <class By>
    std::vector<LinkId> trace(VertexId from, VertexId to, By by) const {
        std::vector<LinkId> path;
        for (VertexId v = to; v != from; v = other_end(link(path.back()), v)) path.push_back(by(v));
        std::ranges::reverse(path);
        return path;
    }

    const Topology& topology_;
    std::vector<std::vector<LinkId>> links_;
};

}  // namespace lockstep::machine
