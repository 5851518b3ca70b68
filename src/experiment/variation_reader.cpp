#include "experiment/variation_reader.hpp"

#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "plan/plan.hpp"

namespace lockstep::experiment {

namespace {

using config::Node;
using config::Object;

constexpr Seconds longest{100.0 * 24 * 3600};   ///< that virtual time, in picoseconds, can tell
constexpr double slowest = 1e-3, fastest = 10;  ///< speeds beyond these are slips of the pen

std::vector<int> read_places(Object& object, std::string_view one, std::string_view several, int count) {
    std::vector<int> result;
    if (object.has(one)) result.push_back(static_cast<int>(object.integer(one, 0, plan::max_ranks - 1)));
    if (object.has(several))
        for (const std::int64_t place : object.integers(several)) result.push_back(static_cast<int>(place));
    for (const int place : result)
        if (place < 0 || place >= count)
            object.error(object.has(one) ? one : several,
                         fmt::format("there is no {} {} (the largest world has {} 0 to {}); name one of these", one,
                                     place, several, count - 1));
    return result;
}

double read_speed(Object& object, std::string_view key) {
    const std::size_t before = object.diagnostics().count();
    const double speed = object.number(key, 0, fastest);
    if (object.diagnostics().count() == before && speed < slowest)
        object.error(key, fmt::format("a speed of {} (1 is normal, and at 0 a step never ends); use {} or more", speed,
                                      slowest));
    return speed;
}

/// The ranks and nodes that an entry names.
machine::RankSpeed read_named(Object& object, int ranks) {
    machine::RankSpeed speed;
    speed.ranks = read_places(object, "rank", "ranks", ranks);
    speed.nodes = read_places(object, "node", "nodes", ranks);
    return speed;
}

machine::RankSpeed read_straggler(const Node& node, int ranks, config::Diagnostics& diagnostics) {
    Object object(node, "straggler", diagnostics);
    machine::RankSpeed speed = read_named(object, ranks);
    if (speed.ranks.empty() && speed.nodes.empty()) object.error("", "names no rank; give rank, ranks, node or nodes");
    speed.profile = {{Seconds{0}, read_speed(object, "speed")}};
    object.finish();
    return speed;
}

/// [[time, speed], ...] with times that rise.
std::vector<machine::SpeedChange> read_profile(Object& object) {
    std::vector<machine::SpeedChange> profile;
    for (const Node& item : object.nodes("profile")) {
        if (item.items().size() != 2) {
            object.diagnostics().error(item.where(), "profile: wants pairs of a time and a speed, such as [20 s, 0.7]");
            continue;
        }
        // Each value is read as a key of its own, so that it is judged and located like any other.
        const Node pair = Node::make_mapping(
            {{"time", item.where(), item.items()[0]}, {"speed", item.where(), item.items()[1]}}, item.where());
        Object change(pair, "profile", object.diagnostics());
        profile.push_back({change.seconds("time"), read_speed(change, "speed")});
        if (profile.back().from > longest)
            object.diagnostics().error(item.where(), "profile: a time above 100 days; no simulation lasts that long");
        if (profile.size() > 1 && profile.back().from <= profile[profile.size() - 2].from)
            object.diagnostics().error(item.where(), "profile: times must rise from one pair to the next");
    }
    if (profile.empty()) object.error("profile", "has no pair of a time and a speed; give one, such as [[20 s, 0.7]]");
    return profile;
}

machine::RankSpeed read_throttling(const Node& node, int ranks, config::Diagnostics& diagnostics) {
    Object object(node, "throttling", diagnostics);
    machine::RankSpeed speed = read_named(object, ranks);
    speed.is_everywhere = speed.ranks.empty() && speed.nodes.empty();
    speed.profile = read_profile(object);
    object.finish();
    return speed;
}

std::optional<machine::Jitter> read_jitter(const Node& node, config::Diagnostics& diagnostics) {
    Object object(node, "jitter", diagnostics);
    const std::size_t before = diagnostics.count();
    machine::Jitter jitter;
    const std::string family =
        object.choice_or("distribution", {"normal", "lognormal", "gamma", "exponential"}, "lognormal");
    jitter.family = fit::parse_family(family).value_or(fit::Family::lognormal);
    jitter.cv = object.number_or("cv", jitter.family == fit::Family::exponential ? 1 : 0, 0, 10);
    if (!object.has("cv") && jitter.family != fit::Family::exponential)
        object.error("", "key 'cv' is missing (standard deviation over mean of a kernel's time), such as cv: 0.03");
    object.finish();
    if (diagnostics.count() != before) return std::nullopt;
    try {
        fit::Distribution::factor(jitter.family, jitter.cv);
    } catch (const InputError& failure) {
        object.error("cv", failure.what());
        return std::nullopt;
    }
    return jitter.cv > 0 ? std::optional(jitter) : std::nullopt;
}

}  // namespace

machine::Variation read_variation(Object& experiment, int most_ranks) {
    machine::Variation variation;
    const auto node = experiment.node("variation");
    if (!node) return variation;
    Object object(*node, "variation", experiment.diagnostics());
    if (const auto jitter = object.node("jitter")) variation.jitter = read_jitter(*jitter, object.diagnostics());
    if (object.has("stragglers"))
        for (const Node& item : object.nodes("stragglers"))
            variation.speeds.push_back(read_straggler(item, most_ranks, object.diagnostics()));
    if (object.has("throttling"))
        for (const Node& item : object.nodes("throttling"))
            variation.speeds.push_back(read_throttling(item, most_ranks, object.diagnostics()));
    object.finish();
    return variation;
}

}  // namespace lockstep::experiment
