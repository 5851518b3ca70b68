#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

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

double seconds(const step::CommunicationTime& time) { return (time.latency + time.transfer).value; }

/// Base, hop and 1 / (link x channels).
using Constants = std::array<double, 3>;

void set(machine::Calibration& c, const Constants& x, Bandwidth channels) {
    c.collective_base = Seconds{x[0]};
    c.per_hop = Seconds{x[1]};
    c.link = 1 / (x[2] * channels.value);
}

/// fixed + the sum of slope x constant: the time of a point by the algorithm and protocol that it takes at `x`.
struct Line {
    double fixed = 0;
    Constants slope{};
    machine::CollectiveAlgorithm algorithm = machine::CollectiveAlgorithm::ring;
};

Line line_of(machine::Calibration c, cost::Wires wires, const CollectivePoint& p, const Constants& x) {
    set(c, x, wires.channels);
    const auto choice = cost::choose_collective(c, wires, p.kind, p.buffer);
    wires.offer.forced = {choice.algorithm, choice.protocol};
    const auto time_at = [&](const Constants& at) {
        set(c, at, wires.channels);
        return seconds(cost::collective_time(c, wires, p.kind, p.buffer));
    };
    Line line{time_at(x), {}, choice.algorithm};
    for (std::size_t i = 0; i < x.size(); ++i) {
        Constants moved = x;
        const double step = std::max(0.01 * x[i], i < 2 ? 1e-7 : 0);
        moved[i] += step;
        line.slope[i] = (time_at(moved) - time_at(x)) / step;
    }
    for (std::size_t i = 0; i < x.size(); ++i) line.fixed -= line.slope[i] * x[i];
    return line;
}

/// Rings of the protocols that NCCL takes are lines in the constants of ring and simple: which it takes follows from
/// the constants, so both are found in turns. Points by the switches tell nothing of them.
Constants refined(const machine::Calibration& c, const cost::Wires& wires, const std::vector<CollectivePoint>& points,
                  Constants x, std::span<const fit::Bound> bounds) {
    constexpr int turns = 5;
    for (int turn = 0; turn < turns; ++turn) {
        fit::LinearSystem system(3);
        bool tells_link = false, tells_hop = false;
        for (const CollectivePoint& p : points) {
            const Line line = line_of(c, wires, p, x);
            if (line.algorithm == machine::CollectiveAlgorithm::nvls) continue;
            system.add(line.slope, p.time.value - line.fixed, 1 / (p.time.value * p.time.value));
            tells_link = tells_link || line.slope[2] > 0;
            tells_hop = tells_hop || line.slope[1] > 0;
        }
        if (!tells_link || !tells_hop) return x;
        try {
            const fit::Solution solution = fit::solve_bounded(system, bounds);
            std::copy_n(solution.x.begin(), x.size(), x.begin());
        } catch (const IncompleteError&) { return x; }  // the points by rings alone are too few to know better
    }
    return x;
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
    Constants x{solution.x[0], solution.x[1], solution.x[2]};
    machine::Calibration& c = machine.calibration;
    if (wires.offer.has_protocols) x = refined(c, wires, points, x, bounds);
    set(c, x, wires.channels);
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
