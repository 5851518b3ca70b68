// How a cluster is written: its nodes, its network, its faults; what they name is looked up elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "machine/faults.hpp"

namespace lockstep::machine {

struct NodeCount {
    std::string node;  ///< name or path of a machine of one node
    int count = 1;
    config::Location where;
};

struct ClusterForm {
    std::vector<NodeCount> nodes;  ///< in the order of their numbers
    std::optional<config::Node> network;
    std::vector<Fault> faults;
    std::optional<std::string> title;
    std::vector<std::string> sources, notes;

    int count() const;
    std::string name() const;  ///< "4xdgx-1v-16gb", "2xdgx-a100-80gb+2xdgx-h100"
};

inline constexpr int max_nodes = 1'000'000;

/// Whether a machine document is a cluster: it has `node` or `nodes`.
bool is_cluster(const config::Node& node);

/// Reads {node, count} or {nodes: [{node, count} ...]}, with network, faults, title, sources and notes. Errors go to
/// `diagnostics`; the result is then not to be used.
ClusterForm read_cluster_form(const config::Node& node, config::Diagnostics& diagnostics);

}  // namespace lockstep::machine
