#include "analysis/device_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fit/quantiles.hpp"

namespace lockstep::analysis {

namespace {

constexpr std::int64_t few_steps = 3;
constexpr double small_share_of_steps = 0.05;
constexpr double small_change = 0.1, small_lag = 0.05;  // of a clock

/// " (power cap)", or nothing.
std::string because(step::ThrottleReasons reasons) {
    return reasons.bits == 0 ? "" : fmt::format(" ({})", step::to_string(reasons));
}

std::string in_ghz(double hertz) { return fmt::format("{:.3g} GHz", hertz * 1e-9); }

}  // namespace

void DeviceStates::add(const step::StepRecord& record) {
    if (!record.device) return;
    OfRank& rank = ranks_[record.rank];
    ++rank.steps;
    if (record.device->sm_clock) rank.clocks.push_back(record.device->sm_clock->value);
    if (!record.device->throttle) return;
    const step::ThrottleReasons reasons = *record.device->throttle;
    if (reasons.of_power_and_heat().bits != 0) ++rank.slowed_steps;
    rank.reasons.bits |= reasons.bits & ~static_cast<std::uint64_t>(step::ThrottleReason::idle);
}

void DeviceStates::warn_of_slowdown(std::vector<std::string>& warnings) const {
    int slowed = 0;
    std::pair<int, const OfRank*> most{0, nullptr};
    step::ThrottleReasons reasons;
    for (const auto& [number, rank] : ranks_) {
        const bool is_slowed =
            rank.slowed_steps > few_steps &&
            static_cast<double>(rank.slowed_steps) > small_share_of_steps * static_cast<double>(rank.steps);
        if (!is_slowed) continue;
        ++slowed;
        reasons.bits |= rank.reasons.of_power_and_heat().bits;
        if (most.second == nullptr || rank.slowed_steps > most.second->slowed_steps) most = {number, &rank};
    }
    if (slowed == 0) return;
    const std::string steps = fmt::format("{} of {} sampled steps", most.second->slowed_steps, most.second->steps);
    if (slowed == 1)
        warnings.push_back(fmt::format("rank {}'s GPU was slowed down{} in {}", most.first, because(reasons), steps));
    else
        warnings.push_back(fmt::format("the GPUs of {} of {} ranks were slowed down{}, rank {}'s in {}", slowed,
                                       ranks_.size(), because(reasons), most.first, steps));
}

void DeviceStates::warn_of_change(std::vector<std::string>& warnings) const {
    double largest = small_change;
    std::string text;
    for (const auto& [number, rank] : ranks_) {
        if (rank.clocks.size() < 2) continue;
        const double low = fit::quantile(rank.clocks, 0.05), high = fit::quantile(rank.clocks, 0.95);
        if (high <= 0 || (high - low) / high <= largest) continue;
        largest = (high - low) / high;
        text = fmt::format("the clock of rank {}'s GPU was between {} and {} over the counted steps{}", number,
                           in_ghz(low), in_ghz(high), because(rank.reasons));
    }
    if (!text.empty()) warnings.push_back(text);
}

void DeviceStates::warn_of_laggards(std::vector<std::string>& warnings) const {
    std::vector<std::pair<double, int>> clocks;  // hertz, rank
    for (const auto& [number, rank] : ranks_)
        if (!rank.clocks.empty()) clocks.emplace_back(fit::median(rank.clocks), number);
    if (clocks.size() < 2) return;
    std::sort(clocks.begin(), clocks.end());
    const auto [slowest, slow_rank] = clocks.front();
    const auto [fastest, fast_rank] = clocks.back();
    const double limit = (1 - small_lag) * fastest;
    const auto laggards =
        std::count_if(clocks.begin(), clocks.end(), [&](const auto& one) { return one.first < limit; });
    if (laggards == 0) return;
    const std::string why = because(ranks_.at(slow_rank).reasons);
    if (laggards == 1) {
        std::vector<double> others;
        for (auto one = clocks.begin() + 1; one != clocks.end(); ++one) others.push_back(one->first);
        warnings.push_back(fmt::format("rank {}'s GPU ran at {} against {} of the others{}", slow_rank, in_ghz(slowest),
                                       in_ghz(fit::median(others)), why));
    } else {
        warnings.push_back(fmt::format("the GPUs of {} of {} ranks ran slower than rank {}'s at {}, rank {}'s at {}{}",
                                       laggards, clocks.size(), fast_rank, in_ghz(fastest), slow_rank, in_ghz(slowest),
                                       why));
    }
}

std::vector<std::string> DeviceStates::warnings() const {
    std::vector<std::string> warnings;
    warn_of_slowdown(warnings);
    warn_of_change(warnings);
    warn_of_laggards(warnings);
    return warnings;
}

}  // namespace lockstep::analysis
