// The collectives that ranks carry out together, by name.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };

std::string_view to_string(CollectiveKind kind);  ///< "all_reduce" ...
std::optional<CollectiveKind> parse_collective(std::string_view text);

/// Bus bandwidth over algorithm bandwidth (buffer / time), as nccl-tests count them (doc/PERFORMANCE.md there): what
/// each rank's wire carries, whatever the number of ranks n. all_reduce 2(n-1)/n; reduce_scatter, all_gather,
/// all_to_all (n-1)/n; broadcast 1.
double bus_factor(CollectiveKind kind, int ranks);

}  // namespace lockstep
