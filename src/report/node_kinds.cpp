#include "report/node_kinds.hpp"

#include <fmt/format.h>

namespace lockstep::report {

std::vector<std::pair<int, int>> node_ranges(const machine::Machine& machine, int kind) {
    std::vector<std::pair<int, int>> ranges;
    for (int node = 0; node < machine.nodes; ++node) {
        if (machine.kind_of(node) != kind) continue;
        if (!ranges.empty() && ranges.back().second == node - 1)
            ranges.back().second = node;
        else
            ranges.emplace_back(node, node);
    }
    return ranges;
}

int kind_count(const machine::Machine& machine, int kind) {
    int count = 0;
    for (const auto& [first, last] : node_ranges(machine, kind)) count += last - first + 1;
    return count;
}

std::string nodes_text(const machine::Machine& machine, int kind) {
    const auto ranges = node_ranges(machine, kind);
    std::string text = kind_count(machine, kind) == 1 ? "Node " : "Nodes ";
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : ", ", ranges[i].first);
        if (ranges[i].second > ranges[i].first) text += fmt::format("-{}", ranges[i].second);
    }
    return text;
}

}  // namespace lockstep::report
