#include "base/collective.hpp"

#include <array>
#include <utility>

namespace lockstep {

namespace {

constexpr std::array<std::pair<CollectiveKind, std::string_view>, 5> names{
    {{CollectiveKind::all_reduce, "all_reduce"},
     {CollectiveKind::reduce_scatter, "reduce_scatter"},
     {CollectiveKind::all_gather, "all_gather"},
     {CollectiveKind::broadcast, "broadcast"},
     {CollectiveKind::all_to_all, "all_to_all"}}};

}  // namespace

std::string_view to_string(CollectiveKind kind) {
    for (const auto& [known, name] : names)
        if (known == kind) return name;
    return "?";
}

std::optional<CollectiveKind> parse_collective(std::string_view text) {
    for (const auto& [kind, name] : names)
        if (name == text) return kind;
    return std::nullopt;
}

double bus_factor(CollectiveKind kind, int ranks) {
    const double others = static_cast<double>(ranks - 1) / ranks;
    switch (kind) {
        case CollectiveKind::all_reduce: return 2 * others;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_gather:
        case CollectiveKind::all_to_all: return others;
        case CollectiveKind::broadcast: break;
    }
    return 1;
}

}  // namespace lockstep
