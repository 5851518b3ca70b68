// Jitter: kernels take longer or shorter by chance, and ranks that a simulated one stands for come later than it does.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/time.hpp"
#include "fit/distribution.hpp"
#include "machine/variation.hpp"

namespace lockstep::sim {

/// Kernel time along the path that led to a moment of a rank: what it takes on average, its variance over ranks, and
/// how far this rank's own draws are from the average. Seconds and their squares.
struct DriftSum {
    fit::Moments moments;
    double deviation = 0;
};

/// Of one stream: since the beginning, and what it was when the members of each communicator were together last.
struct Drift {
    DriftSum sum;
    std::vector<DriftSum> at_meeting;  ///< by communicator

    /// All ranks begin together again: what they did before no longer tells them apart.
    void forget() { at_meeting.assign(at_meeting.size(), sum); }
};

/// A simulated rank draws a factor for each of its kernels. Where it meets k ranks of its own group, which are not
/// simulated, the latest of them comes as late as the largest of k draws from the distribution of the kernel time since
/// they met last (its moments are the sums over the kernels). Afterwards that time is, for other communicators, the
/// largest of k + 1.
class DriftModel {
public:
    DriftModel(const machine::Jitter& jitter, std::uint64_t seed);

    /// For a kernel of a rank, in a step and place of the tape.
    double factor(int rank, std::int64_t step, std::int32_t op) const;
    /// A kernel that takes `time` on average and was given `factor`.
    void add(Drift& drift, Seconds time, double factor) const;
    /// How much later than the rank itself the latest of `others` comes to a meeting of `communicator`; 0 when it is
    /// the latest. Afterwards they are together, `drift` as the latest has it.
    Seconds meet(Drift& drift, std::int32_t communicator, std::int64_t others, int rank, std::int64_t step,
                 std::int32_t op);

private:
    fit::Moments maximum(const fit::Moments& of, double k);

    machine::Jitter jitter_;
    std::uint64_t seed_;
    fit::Distribution factors_;
    fit::MaximumMoments maxima_;
};

}  // namespace lockstep::sim
