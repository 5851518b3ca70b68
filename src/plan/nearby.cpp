#include "plan/nearby.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::plan {

namespace {

constexpr std::size_t most_shown = 12;

}  // namespace

std::string nearest_multiples(std::int64_t value, std::int64_t step, std::int64_t limit) {
    const std::int64_t below = value / step * step;
    const std::int64_t above = below + step;
    if (below == 0) return fmt::format("{}", above);
    if (above > limit) return fmt::format("{}", below);
    return fmt::format("{} or {}", below, above);
}

std::vector<std::int64_t> divisors(std::int64_t n) {
    std::vector<std::int64_t> small, large;
    for (std::int64_t d = 1; d <= n / d; ++d) {
        if (n % d != 0) continue;
        small.push_back(d);
        if (d != n / d) large.push_back(n / d);
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    return small;
}

std::string either(const std::vector<std::int64_t>& values) {
    if (values.empty()) return "none";
    if (values.size() > most_shown) {
        const std::vector<std::int64_t> first(values.begin(), values.begin() + most_shown);
        return fmt::format("{} ...", fmt::join(first, ", "));
    }
    const std::vector<std::int64_t> but_last(values.begin(), values.end() - 1);
    if (but_last.empty()) return fmt::format("{}", values.back());
    return fmt::format("{} or {}", fmt::join(but_last, ", "), values.back());
}

std::string nearest_divisors(std::int64_t value, std::int64_t n) {
    const auto all = divisors(n);
    const auto above = std::ranges::upper_bound(all, value);
    std::vector<std::int64_t> around;
    if (above != all.begin()) around.push_back(*(above - 1));
    if (above != all.end()) around.push_back(*above);
    return either(around);
}

}  // namespace lockstep::plan
