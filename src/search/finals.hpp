// The last round of a search: plans in the full simulator.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings.hpp"
#include "plan/space.hpp"
#include "search/search.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// Simulates candidates in batches, shared out over threads, and keeps what came of them.
class Finals {
public:
    Finals(const Subject& subject, const plan::Space& space, const SearchOptions& options)
        : subject_(subject), space_(space), options_(options) {}

    /// Simulates those that aren't yet; `expected` is what the progress counts to. Returns false when it was stopped.
    bool simulate(const std::vector<std::size_t>& candidates, std::int64_t expected);

    bool fits(std::size_t candidate) const;
    /// By candidate.
    const std::map<std::size_t, analysis::RunFindings>& runs() const { return runs_; }
    /// Candidates that can't be simulated, with the reason.
    const std::map<std::size_t, std::string>& refused() const { return refused_; }
    /// Of those that fit.
    std::optional<Seconds> best() const;
    std::int64_t fitting() const;

private:
    const Subject& subject_;
    const plan::Space& space_;
    const SearchOptions& options_;
    std::map<std::size_t, analysis::RunFindings> runs_;
    std::map<std::size_t, std::string> refused_;
};

}  // namespace lockstep::search
