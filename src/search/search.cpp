#include "search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "model/first_blocks.hpp"
#include "plan/stages.hpp"
#include "search/axes.hpp"
#include "search/reasons.hpp"

namespace lockstep::search {

namespace {

using Order = std::vector<std::size_t>;

constexpr std::size_t batch_size = 8;        ///< plans simulated between two looks at what is best
constexpr std::size_t most_beyond_top = 64;  ///< plans simulated beyond those that are asked for
constexpr std::size_t most_of_front = 12;

std::string why_not_by_pieces(const Subject& subject) {
    const model::Model& model = subject.experiment.model;
    if (const int blocks = plan::block_count(model); blocks < Pieces::least_blocks())
        return fmt::format("the model has {} blocks, and estimates want {}", blocks, Pieces::least_blocks());
    return model::why_blocks_differ(model);
}

void refuse_empty(const plan::Space& space) {
    if (!space.candidates.empty()) return;
    std::string reasons;
    for (const std::string& why : space.refusals) reasons += "\n  " + why;
    throw InputError(
        fmt::format("an empty search space: none of its {} combinations makes a plan; widen search or "
                    "change ranks or batch{}{}",
                    space.combinations, reasons.empty() ? "" : ":", reasons));
}

class Searcher {
public:
    Searcher(const Subject& subject, const plan::Space& space, const SearchOptions& options)
        : subject_(subject), space_(space), options_(options), finals_(subject, space, options) {}

    analysis::SearchFindings run() {
        refuse_empty(space_);
        findings_.why_exhaustive = why_not_by_pieces(subject_);
        findings_.is_exhaustive = options_.is_exhaustive || !findings_.why_exhaustive.empty();
        if (options_.is_exhaustive) findings_.why_exhaustive.clear();
        if (findings_.is_exhaustive)
            simulate_all();
        else
            simulate_best();
        return conclude();
    }

private:
    void simulate_all() {
        screened_ = screen_by_floors(space_, Bounds(subject_), options_.limit);
        Order order;
        for (std::size_t i = 0; i < screened_.size(); ++i)
            if (options_.is_exhaustive || screened_[i].fate == Screened::Fate::not_reached) order.push_back(i);
        findings_.is_complete = finals_.simulate(order, static_cast<std::int64_t>(order.size()));
    }

    void simulate_best() {
        Pieces pieces(subject_);
        Estimator estimator(subject_, pieces);
        screened_ = screen(space_, Bounds(subject_), estimator, options_);
        findings_.counts.small_graphs = pieces.simulated();
        findings_.margin = time_margin;
        const Order order = by_estimate();
        const std::size_t top = static_cast<std::size_t>(options_.top);
        std::size_t next = 0;
        while (next < order.size() && next < top + most_beyond_top && !is_decided(order[next])) {
            const std::size_t end = std::min(next + batch_size, order.size());
            const Order batch(order.begin() + static_cast<long>(next), order.begin() + static_cast<long>(end));
            next = end;
            if (!finals_.simulate(batch, static_cast<std::int64_t>(std::max(next, top) + most_of_front))) break;
        }
        for (std::size_t i = next; i < order.size() && !is_beyond(order[i]); ++i) ++findings_.counts.left_within_margin;
        finals_.simulate(front_of_estimates(order), static_cast<std::int64_t>(next + most_of_front));
        findings_.is_complete = !options_.is_stopped();
    }

    Order by_estimate() const {
        Order order;
        for (std::size_t i = 0; i < screened_.size(); ++i)
            if (screened_[i].fate == Screened::Fate::estimated) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return screened_[a].parts.total() < screened_[b].parts.total();
        });
        return order;
    }
    /// Whether a plan's estimate is too long for it to be the best.
    bool is_beyond(std::size_t i) const {
        const auto best = finals_.best();
        return best && screened_[i].parts.total() > (1 + time_margin) * *best;
    }
    bool is_decided(std::size_t next) const { return finals_.fitting() >= options_.top && is_beyond(next); }

    /// Some of the plans that no other estimate beats in both time and memory, evenly over the memory.
    Order front_of_estimates(const Order& by_time) const {
        Order front;
        Bytes least{1e300};
        for (const std::size_t i : by_time) {
            if (screened_[i].memory >= least || screened_[i].memory > options_.limit) continue;
            least = screened_[i].memory;
            front.push_back(i);
        }
        if (front.size() <= most_of_front) return front;
        Order some;
        for (std::size_t k = 0; k < most_of_front; ++k)
            some.push_back(front[k * (front.size() - 1) / (most_of_front - 1)]);
        return some;
    }

    Order by_time() const {
        Order order;
        for (const auto& [candidate, run] : finals_.runs())
            if (finals_.fits(candidate)) order.push_back(candidate);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return time_of(a) < time_of(b); });
        return order;
    }
    Seconds time_of(std::size_t i) const { return finals_.runs().at(i).step_time.median; }

    analysis::RankedPlan ranked(std::size_t i, std::size_t best) const {
        analysis::RankedPlan plan;
        plan.plan = plan::plan_text(space_.candidates[i].request);
        plan.run = finals_.runs().at(i);
        if (screened_[i].fate == Screened::Fate::estimated) plan.estimate = screened_[i].parts.total();
        if (i != best)
            plan.reason = why_slower({space_.candidates[i].plan, parts_of(plan.run.breakdown)},
                                     {space_.candidates[best].plan, parts_of(finals_.runs().at(best).breakdown)},
                                     subject_.placement);
        return plan;
    }

    void count() {
        analysis::SearchCounts& counts = findings_.counts;
        counts.combinations = space_.combinations;
        counts.plans = static_cast<std::int64_t>(space_.candidates.size());
        for (std::size_t i = 0; i < screened_.size(); ++i) {
            const auto run = finals_.runs().find(i);
            const bool is_too_large =
                run != finals_.runs().end() ? !finals_.fits(i) : screened_[i].fate == Screened::Fate::above_memory;
            counts.above_memory += is_too_large ? 1 : 0;
            counts.above_bound += screened_[i].fate == Screened::Fate::above_bound;
            counts.estimated += screened_[i].fate == Screened::Fate::estimated;
        }
        counts.simulated = static_cast<std::int64_t>(finals_.runs().size());
    }

    [[noreturn]] void refuse() const {
        if (!findings_.is_complete)
            throw IncompleteError("the search was stopped before it had simulated a plan that fits");
        if (finals_.runs().empty() && !finals_.refused().empty())
            throw InputError("no plan of the search space can be simulated; the first: " +
                             finals_.refused().begin()->second);
        std::size_t least = 0;
        const auto memory = [&](std::size_t i) {
            const auto run = finals_.runs().find(i);
            return run == finals_.runs().end() ? screened_[i].memory : run->second.memory.total;
        };
        for (std::size_t i = 1; i < screened_.size(); ++i)
            if (memory(i) < memory(least)) least = i;
        throw InputError(
            fmt::format("none of {} plans fits {} a rank (the smallest, {}, needs {}); use more ranks, a smaller "
                        "batch, or a larger "
                        "--memory",
                        space_.candidates.size(), config::format(options_.limit),
                        plan::plan_text(space_.candidates[least].request), config::format(memory(least))));
    }

    analysis::SearchFindings conclude() {
        count();
        const Order order = by_time();
        if (order.empty()) refuse();
        const std::size_t best = order.front();
        Bytes least{1e300};
        for (const std::size_t i : order) {
            if (findings_.ranking.size() < static_cast<std::size_t>(options_.top))
                findings_.ranking.push_back(ranked(i, best));
            const Bytes memory = finals_.runs().at(i).memory.total;
            if (memory >= least) continue;
            least = memory;
            findings_.front.push_back(ranked(i, best));
        }
        findings_.axes = best_by_axis(subject_, space_, screened_, finals_, best, options_.limit);
        findings_.space = describe_axes(space_);
        describe(finals_.runs().at(best));
        return std::move(findings_);
    }

    void describe(const analysis::RunFindings& run) {
        findings_.experiment = run.experiment;
        findings_.label = run.label;
        findings_.model = run.model;
        findings_.machine = run.machine;
        findings_.precision = run.precision;
        findings_.framework = run.framework;
        findings_.ranks = run.ranks;
        findings_.global_batch = run.global_batch;
        findings_.throughput_unit = run.throughput_unit;
        findings_.limit = options_.limit;
        findings_.capacity = run.memory_capacity;
    }

    const Subject& subject_;
    const plan::Space& space_;
    const SearchOptions& options_;
    Finals finals_;
    std::vector<Screened> screened_;
    analysis::SearchFindings findings_;
};

}  // namespace

Bytes usable_memory(Bytes capacity) { return 0.95 * capacity; }
std::string usable_memory_text() { return "the device's memory less 5 %"; }

analysis::SearchFindings search(const Subject& subject, const plan::Space& space, const SearchOptions& options) {
    return Searcher(subject, space, options).run();
}

}  // namespace lockstep::search
