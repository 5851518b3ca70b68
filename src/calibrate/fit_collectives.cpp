#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.hpp"
#include "calibrate/fit.hpp"
#include "config/quantity.hpp"
#include "cost/collective_cost.hpp"
#include "cost/wires.hpp"
#include "fit/least_squares.hpp"

namespace lockstep::calibrate {

namespace {

constexpr double least_link = 1e-4, most_link = 2;  // what a machine file may say of `link`

/// Steps around the ring and bytes on it over the buffer.
struct Ring {
    double steps, factor;
};
Ring ring_of(step::CollectiveKind kind, int ranks) {
    const double n = ranks;
    if (kind == step::CollectiveKind::all_reduce) return {2 * (n - 1), 2 * (n - 1) / n};
    if (kind == step::CollectiveKind::all_gather || kind == step::CollectiveKind::reduce_scatter)
        return {n - 1, (n - 1) / n};
    throw LogicError("only collectives on rings tell the constants of a link");
}

std::string_view name_of(step::CollectiveKind kind) {
    return kind == step::CollectiveKind::all_reduce   ? "all-reduce"
           : kind == step::CollectiveKind::all_gather ? "all-gather"
                                                      : "reduce-scatter";
}

}  // namespace

std::vector<Comparison> fit_collectives(machine::Machine& machine, int ranks,
                                        const std::vector<CollectivePoint>& points, const std::string& source) {
    std::vector<int> members(static_cast<std::size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
    const cost::Wires wires = cost::find_wires(machine, machine.place(ranks), members);
    fit::LinearSystem system(3);
    for (const CollectivePoint& p : points) {
        const Ring ring = ring_of(p.kind, ranks);
        system.add({1, ring.steps, ring.factor * p.buffer.value}, p.time.value, 1 / (p.time.value * p.time.value));
    }
    const double fastest = 1 / (most_link * wires.channels.value), slowest = 1 / (least_link * wires.channels.value);
    const std::array bounds{fit::Bound{0}, fit::Bound{0}, fit::Bound{fastest, slowest}};
    const fit::Solution solution = fit::solve_bounded(system, bounds);
    machine::Calibration& c = machine.calibration;
    c.collective_base = Seconds{solution.x[0]};
    c.per_hop = Seconds{solution.x[1]};
    c.link = 1 / (solution.x[2] * wires.channels.value);
    for (const char* name : {"link", "collective_base", "per_hop"})
        set_source(c, name, fmt::format("{} ({} ranks)", source, ranks));

    std::vector<Comparison> comparisons;
    for (const CollectivePoint& p : points) {
        const auto fitted = cost::collective_time(c, wires, p.kind, p.buffer);
        comparisons.push_back({Comparison::Kind::collective, std::string(name_of(p.kind)), config::format(p.buffer),
                               p.time, fitted.latency + fitted.transfer});
    }
    return comparisons;
}

}  // namespace lockstep::calibrate
