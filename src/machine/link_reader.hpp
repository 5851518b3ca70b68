// One item of the list `links` of a machine file: [ends, ends, kind, count, rate].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "machine/topology.hpp"

namespace lockstep::machine {

/// Vertices of one kind, and links of one bundle, that a file may ask for: more is a slip of the pen.
inline constexpr int most_of_a_kind = 128;

/// What one link of a kind carries in one direction where the item doesn't say; 0: not known.
struct LinkRates {
    Bandwidth nvlink, pcie, socket, memory;

    Bandwidth of(LinkKind kind) const {
        switch (kind) {
            case LinkKind::nvlink: return nvlink;
            case LinkKind::pcie: return pcie;
            case LinkKind::socket: return socket;
            case LinkKind::memory: return memory;
        }
        return {};
    }
};

/// Adds the links of items to a topology whose vertices are known.
class LinkReader {
public:
    LinkReader(Topology& topology, const LinkRates& rates, config::Diagnostics& diagnostics)
        : topology_(topology), rates_(rates), diagnostics_(diagnostics) {}

    /// Reports an item that is malformed, names unknown vertices, or joins what its kind of link can't join or what is
    /// joined already (the first such pair of an item).
    void read(const config::Node& item);

private:
    void report(const config::Node& at, const std::string& message) const;
    std::optional<std::string> fault_of(const Link& link) const;
    std::vector<VertexId> read_ends(const config::Node& node) const;
    std::vector<VertexId> read_range(const config::Node& node) const;
    std::vector<VertexId> find_range(const config::Node& node, const std::string& kind, int first, int last) const;
    std::optional<LinkKind> read_kind(const config::Node& node) const;
    std::optional<int> read_count(const config::Node& node) const;
    std::optional<Bandwidth> read_rate(const config::Node& node) const;
    std::optional<Bandwidth> default_rate(const config::Node& node, LinkKind kind) const;

    Topology& topology_;
    const LinkRates& rates_;
    config::Diagnostics& diagnostics_;
};

}  // namespace lockstep::machine
