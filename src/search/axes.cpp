#include "search/axes.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "search/reasons.hpp"

namespace lockstep::search {

namespace {

struct Axis {
    std::string name;
    std::function<std::int64_t(const plan::Candidate&)> value;
    std::function<std::string(std::int64_t)> text = [](std::int64_t number) { return fmt::format("{}", number); };
};

const std::vector<Axis>& all_axes() {
    static const std::vector<Axis> axes{
        {"tp", [](const plan::Candidate& c) { return c.plan.mesh.tp; }},
        {"pp", [](const plan::Candidate& c) { return c.plan.mesh.pp; }},
        {"vpp", [](const plan::Candidate& c) { return c.plan.split.vpp; }},
        {"cp", [](const plan::Candidate& c) { return c.plan.mesh.cp; }},
        {"ep", [](const plan::Candidate& c) { return c.plan.mesh.ep; }},
        {"zero", [](const plan::Candidate& c) { return c.plan.split.zero; }},
        {"sequence_parallel", [](const plan::Candidate& c) { return c.plan.split.sequence_parallel ? 1 : 0; },
         [](std::int64_t value) { return value == 0 ? "false" : "true"; }},
        {"recompute", [](const plan::Candidate& c) { return static_cast<std::int64_t>(c.plan.split.recompute); },
         [](std::int64_t value) { return std::string(to_string(static_cast<plan::Recompute>(value))); }},
        {"microbatch", [](const plan::Candidate& c) { return c.plan.micro_batch; }}};
    return axes;
}

/// The best of the plans with one value.
struct Best {
    std::optional<std::size_t> candidate;
    Seconds time;
    Bytes least_memory{1e300};
};

class AxisReport {
public:
    AxisReport(const plan::Space& space, const std::vector<Screened>& screened, const Finals& finals, Bytes limit)
        : space_(space), screened_(screened), finals_(finals), limit_(limit) {}

    std::optional<Seconds> time_of(std::size_t i) const {
        if (finals_.refused().contains(i)) return std::nullopt;
        if (const auto run = finals_.runs().find(i); run != finals_.runs().end())
            return finals_.fits(i) ? std::optional(run->second.step_time.median) : std::nullopt;
        if (screened_[i].fate != Screened::Fate::estimated || screened_[i].memory > limit_) return std::nullopt;
        return screened_[i].parts.total();
    }
    TimeParts parts(std::size_t i) const {
        if (screened_[i].fate == Screened::Fate::estimated) return screened_[i].parts;
        return parts_of(finals_.runs().at(i).breakdown);
    }
    Bytes memory(std::size_t i) const {
        const auto run = finals_.runs().find(i);
        return run == finals_.runs().end() ? screened_[i].memory : run->second.memory.total;
    }

    std::map<std::int64_t, Best> best_by_value(const Axis& axis) const {
        std::map<std::int64_t, Best> best;
        for (std::size_t i = 0; i < space_.candidates.size(); ++i) {
            Best& of_value = best[axis.value(space_.candidates[i])];
            of_value.least_memory = std::min(of_value.least_memory, memory(i));
            const auto time = time_of(i);
            if (!time || (of_value.candidate && of_value.time <= *time)) continue;
            of_value.candidate = i;
            of_value.time = *time;
        }
        return best;
    }

private:
    const plan::Space& space_;
    const std::vector<Screened>& screened_;
    const Finals& finals_;
    Bytes limit_;
};

}  // namespace

std::vector<analysis::AxisValue> best_by_axis(const Subject& subject, const plan::Space& space,
                                              const std::vector<Screened>& screened, const Finals& finals,
                                              std::size_t best, Bytes limit) {
    const AxisReport report(space, screened, finals, limit);
    const Timed of_best{space.candidates[best].plan, report.parts(best)};
    std::vector<analysis::AxisValue> values;
    for (const Axis& axis : all_axes()) {
        const auto by_value = report.best_by_value(axis);
        if (by_value.size() < 2) continue;
        for (const auto& [value, found] : by_value) {
            analysis::AxisValue one{axis.name, axis.text(value), "", std::nullopt, false, {}};
            if (found.candidate) {
                const plan::Candidate& candidate = space.candidates[*found.candidate];
                one.plan = plan::plan_text(candidate.request);
                one.time = found.time;
                one.is_estimate = !finals.runs().contains(*found.candidate);
                if (value != axis.value(space.candidates[best]))
                    one.reason =
                        why_slower({candidate.plan, report.parts(*found.candidate)}, of_best, subject.placement);
            } else if (found.least_memory > limit) {
                one.reason = why_too_large(found.least_memory, limit);
            }
            values.push_back(std::move(one));
        }
    }
    return values;
}

std::vector<std::string> describe_axes(const plan::Space& space) {
    std::vector<std::string> lines;
    for (const Axis& axis : all_axes()) {
        std::set<std::int64_t> values;
        for (const plan::Candidate& candidate : space.candidates) values.insert(axis.value(candidate));
        std::vector<std::string> texts;
        for (const std::int64_t value : values) texts.push_back(axis.text(value));
        lines.push_back(fmt::format("{}: [{}]", axis.name, fmt::join(texts, ", ")));
    }
    return lines;
}

}  // namespace lockstep::search
