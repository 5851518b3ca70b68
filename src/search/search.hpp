// The best plans of a space: floors discard, estimates rank, the full simulator decides.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "analysis/search_findings.hpp"
#include "plan/space.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

struct SearchProgress {
    std::string phase;  ///< "estimates", "simulations"
    std::int64_t done = 0, total = 0;
    std::optional<Seconds> best;
    double per_second = 0;  ///< plans of the phase, over all threads
};

struct SearchOptions {
    Bytes limit;                                              ///< of memory
    int top = 10;                                             ///< plans to be ranked
    bool is_exhaustive = false;                               ///< simulate every plan
    int threads = 1;                                          ///< the findings don't depend on it
    std::function<bool()> is_stopped = [] { return false; };  ///< asked often, from several threads
    std::function<void(const SearchProgress&)> show = [](const SearchProgress&) {};  ///< called by one at a time
};

/// By how much an estimate may exceed what the simulator says, as a share: what is farther above the best simulated
/// time can't beat it. Measured on random plans of GPT-3 on 64 GPUs: half of the estimates are within 0.2 %, 95 %
/// within 7 % (most of the others too low: many chunks a stage, whose messages share links; too high by up to 7 %: ZeRO
/// 3 with several chunks). Memory: half within 0.4 %, 95 % within 4 %.
inline constexpr double time_margin = 0.05;
inline constexpr double memory_margin = 0.05;

/// What plans may use of a device's memory: 95 %; context, NCCL's buffers and fragmentation take the rest.
Bytes usable_memory(Bytes capacity);
std::string usable_memory_text();  ///< "the device's memory less 5 %"

/// Ranks the plans of `space`. Plans whose floors (bounds.hpp) or estimated memory are above the limit, and those that
/// a known plan beats in both, are discarded; the rest is estimated, and simulated in the order of the estimates until
/// no other estimate is within the margin of the best simulated time (and `top` are there, or 64 more were tried). What
/// is above the limit by the simulator's memory is left out. A model whose blocks differ or are few has all its plans
/// simulated. A search that is stopped ranks what it has. Throws InputError when the space is empty or nothing fits.
analysis::SearchFindings search(const Subject& subject, const plan::Space& space, const SearchOptions& options);

}  // namespace lockstep::search
