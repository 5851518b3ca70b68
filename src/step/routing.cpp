#include "step/routing.hpp"

#include <algorithm>

namespace lockstep::step {

namespace {

/// Of tokens first to last - 1 in rounds of `experts`, each of which gives an expert top_k: whole rounds, and what a
/// part of one can give at most.
std::int64_t most_of_rounds(const Routing& routing, std::int64_t first, std::int64_t last) {
    std::int64_t most = 0;
    while (first < last) {
        const std::int64_t end = std::min(last, (first / routing.experts + 1) * routing.experts);
        const bool is_whole = end - first == routing.experts;
        const std::int64_t rounds = is_whole ? (last - first) / routing.experts : 1;
        most += rounds * std::min(end - first, routing.top_k);
        first = is_whole ? first + rounds * routing.experts : end;
    }
    return most;
}

}  // namespace

std::int64_t most_rows(const Routing& routing, std::span<const IndexRun> positions) {
    std::int64_t most = 0;
    for (const IndexRun& run : positions) {
        const std::int64_t before = routing.crowd_before(run.global);
        const std::int64_t after = routing.crowd_before(run.global + run.count);
        most += after - before + most_of_rounds(routing, run.global - before, run.global + run.count - after);
    }
    return most;
}

}  // namespace lockstep::step
