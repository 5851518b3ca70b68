#include "analysis/span_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::analysis {

namespace {

/// "7th"
std::string ordinal(std::int64_t n) {
    const bool is_teen = n / 10 % 10 == 1;
    const char* ending = is_teen ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
    return fmt::format("{}{}", n, ending);
}

}  // namespace

void SpanCoverage::add(std::int64_t step, bool has_spans) {
    ++steps_;
    last_ = step;
    if (has_spans) with_spans_.push_back(step);
}

std::optional<std::int64_t> SpanCoverage::interval() const {
    if (with_spans_.empty()) return std::nullopt;
    if (static_cast<std::int64_t>(with_spans_.size()) == steps_) return 1;
    const auto is_gap = [](std::int64_t a, std::int64_t b) { return b > a + 1; };
    const auto before_gap = std::adjacent_find(with_spans_.begin(), with_spans_.end(), is_gap);
    if (before_gap == with_spans_.end()) return std::nullopt;
    std::int64_t k = 0;
    for (auto later = before_gap + 1; later != with_spans_.end(); ++later) k = std::max(k, *later - *(later - 1));
    const bool are_multiples =
        std::all_of(before_gap + 1, with_spans_.end(), [k](std::int64_t s) { return s % k == 0; });
    const std::int64_t expected = last_ / k - *before_gap / k;
    if (!are_multiples || with_spans_.end() - (before_gap + 1) != expected) return std::nullopt;
    return k;
}

std::string SpanCoverage::text(std::optional<Seconds> cost, Seconds step_time) const {
    if (with_spans_.empty()) return "no step";
    const auto k = interval();
    const std::string steps = k == 1 ? "every step"
                              : k    ? fmt::format("every {} step", ordinal(*k))
                                     : fmt::format("{} of {} steps", with_spans_.size(), steps_);
    if (!cost || step_time.value <= 0) return steps;
    return fmt::format("{} (recording them {} {:.2g} % of a step)", steps, k == 1 ? "costs" : "in all would cost",
                       100 * (*cost / step_time));
}

}  // namespace lockstep::analysis
