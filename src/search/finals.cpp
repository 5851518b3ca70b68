#include "search/finals.hpp"

#include <algorithm>
#include <mutex>

#include "base/error.hpp"
#include "search/simulate_plan.hpp"
#include "search/workers.hpp"

namespace lockstep::search {

bool Finals::simulate(const std::vector<std::size_t>& candidates, std::int64_t expected) {
    std::mutex mutex;
    return share_out(candidates.size(), options_.threads, options_.is_stopped, [&](std::size_t i) {
        const std::size_t candidate = candidates[i];
        {
            const std::lock_guard lock(mutex);
            if (runs_.contains(candidate) || refused_.contains(candidate)) return;
        }
        std::optional<analysis::RunFindings> run;
        std::string reason;
        try {
            run = simulate_plan(subject_, space_.candidates[candidate].plan);
        } catch (const InputError& failure) { reason = failure.what(); }
        const std::lock_guard lock(mutex);
        if (run)
            runs_.emplace(candidate, std::move(*run));
        else
            refused_.emplace(candidate, std::move(reason));
        const auto done = static_cast<std::int64_t>(runs_.size() + refused_.size());
        options_.show({"simulations", done, std::max(expected, done), best(), 0});
    });
}

bool Finals::fits(std::size_t candidate) const { return runs_.at(candidate).memory.total <= options_.limit; }

std::optional<Seconds> Finals::best() const {
    std::optional<Seconds> least;
    for (const auto& [candidate, run] : runs_)
        if (fits(candidate) && (!least || run.step_time.median < *least)) least = run.step_time.median;
    return least;
}

std::int64_t Finals::fitting() const {
    return std::count_if(runs_.begin(), runs_.end(), [&](const auto& entry) { return fits(entry.first); });
}

}  // namespace lockstep::search
