// Of which steps of a run it was recorded when each op ran.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace lockstep::analysis {

class SpanCoverage {
public:
    /// Steps in order, each once.
    void add(std::int64_t step, bool has_spans);
    /// k, when the steps with spans are the multiples of k and, before the first of those that is left out, any (a
    /// run may measure in its first steps what recording costs); none when there is no such k to be seen.
    std::optional<std::int64_t> interval() const;
    /// "every step", "every 7th step", "12 of 90 steps", "no step"; with `cost`, that of recording one step, "every 7th
    /// step (recording them in all would cost 1.3 % of a step)".
    std::string text(std::optional<Seconds> cost, Seconds step_time) const;

private:
    std::vector<std::int64_t> with_spans_;
    std::int64_t steps_ = 0, last_ = -1;
};

}  // namespace lockstep::analysis
