// Jitter: kernels take longer or shorter by chance, and ranks that a simulated one stands for come later than it does.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "fit/distribution.hpp"
#include "machine/variation.hpp"

namespace lockstep::sim {

/// Of the path that led to a moment of a rank, since the members of a communicator were together last: kernel time on
/// average and its variance over ranks, and how far this rank's own draws are from the average. Seconds.
struct Drift {
    fit::Moments moments;
    double deviation = 0;
    std::int64_t origin = 0;  ///< of the meeting it counts from
};

/// By communicator.
using Drifts = std::vector<Drift>;

/// Paths of one rank from one meeting on have the shorter one's kernels in common; those of two ranks none.
enum class Paths { of_one_rank, of_two_ranks };

/// A simulated rank draws a factor for each of its kernels. Where it meets k ranks of its own group, which are not
/// simulated, the latest of them comes as late as the largest of k draws from the distribution of the kernel time since
/// they met last (its moments are the sums over the kernels; the ranks late at one of several meetings since are more
/// or less the same). Afterwards that time is, for other communicators, the
/// largest of k + 1. Where paths join without a meeting, mean and variance of the later one are
/// Clark's (The greatest of a finite set of random variables, Operations Research 9 (1961), 145-162).
class DriftModel {
public:
    DriftModel(const machine::Jitter& jitter, std::uint64_t seed);

    /// For a kernel of a rank, in a step and place of the tape.
    double factor(int rank, std::int64_t step, std::int32_t op) const;
    /// A kernel that takes `time` on average and was given `factor`.
    void add(Drifts& drifts, Seconds time, double factor) const;
    /// How much later than the rank itself the latest of `others` comes to a meeting of `communicator`; 0 when it is
    /// the latest. Afterwards they are together, `drifts` as the latest has them.
    Seconds meet(Drifts& drifts, std::int32_t communicator, std::int64_t others, int rank, std::int64_t step,
                 std::int32_t op);
    /// `drifts` of a path that ended at `later` goes on where `other`, which ended at `earlier`, has joined it.
    void join(Drifts& drifts, Picoseconds later, const Drifts& other, Picoseconds earlier, Paths paths) const;

private:
    /// A normal score of the latest rank that was drawn, from what, and how much its time varied then.
    struct Draw {
        std::int64_t origin = -1;
        double variance = 0;
        double score = 0;
    };

    fit::Moments maximum(const fit::Moments& of, double k);
    double score_of(const Drift& since, Draw& last, double u) const;

    machine::Jitter jitter_;
    std::uint64_t seed_;
    fit::Distribution factors_;
    fit::MaximumMoments maxima_;
    std::int64_t meetings_ = 0;
    std::map<std::pair<int, std::int32_t>, Draw> draws_;  ///< the last of a rank and communicator
};

}  // namespace lockstep::sim
