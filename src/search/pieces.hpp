// What plans are evaluated from: costs of stages as lines over their blocks, simulated once and kept.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "plan/plan.hpp"
#include "search/probe.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// A cost by blocks: through what was measured, straight on beyond the last two.
template <class Q>
class Line {
public:
    void add(double blocks, Q value) {
        blocks_.push_back(blocks);
        values_.push_back(value);
    }
    Q at(double blocks) const {
        std::size_t i = 0;
        while (i + 2 < blocks_.size() && blocks > blocks_[i + 1]) ++i;
        const Q each = (values_[i + 1] - values_[i]) / (blocks_[i + 1] - blocks_[i]);
        return values_[i] + (blocks - blocks_[i]) * each;
    }
    /// Leaves what each block costs, and nothing else.
    void remove_once() {
        const Q once = at(0);
        for (Q& value : values_) value -= once;
    }

private:
    std::vector<double> blocks_;  ///< rising
    std::vector<Q> values_;
};

struct PassLines {
    Line<Seconds> forward, backward, forward_compute, backward_compute, recomputed;
    Seconds early;          ///< of the backward pass of any chunk: what doesn't wait for the next stage
    Line<Bytes> kept;       ///< by each pass between its forward and its backward pass
    Line<Bytes> transient;  ///< of a chunk, at the peak (StageMemory)
};
struct StepLines {
    Line<Seconds> sync, sync_compute, optimizer, gather;
    Seconds first_gather;
    Line<Bytes> fixed;  ///< memory (StageMemory)
};

/// A line for the stage with the first layers, one in the middle, and the one with the last layers. Of one stage alone
/// `first` is the whole; of two `middle` is what the first costs without what comes before the blocks.
template <class Lines>
struct ByStage {
    Lines first, middle, last;
};

struct PassPieces : ByStage<PassLines> {
    Bytes message;  ///< from stage to stage
};
using StepPieces = ByStage<StepLines>;

/// Pieces are made when they are first asked for, from small graphs of the subject's model with few blocks, and kept;
/// they may be asked for by several threads. The blocks of the model must be alike (model::why_blocks_differ), and
/// least_blocks() or more.
class Pieces {
public:
    explicit Pieces(const Subject& subject);

    /// The least number of blocks that small graphs of any plan want.
    static constexpr int least_blocks() { return 12; }

    /// Depends on tp, sequence_parallel, cp, ep, micro-batch and recompute; with ZeRO 2 and 3 also on the ranks that
    /// share.
    const PassPieces& of_passes(const plan::Plan& plan);
    /// Depends on tp, sequence_parallel, cp, ep, dp and ZeRO.
    const StepPieces& of_step(const plan::Plan& plan);
    /// Small graphs that were simulated.
    std::int64_t simulated() const { return simulated_; }

private:
    using Key = std::tuple<int, int, int, int, int, int, bool, int, std::int64_t, int>;
    template <class T>
    struct Slot {
        std::once_flag made;
        T value;
    };
    template <class T>
    using Slots = std::map<Key, std::unique_ptr<Slot<T>>>;

    PassPieces make_pass_pieces(const plan::Plan& plan) const;
    StepPieces make_step_pieces(const plan::Plan& plan) const;
    const experiment::Experiment& with_blocks(int blocks) const;
    template <class T, class Make>
    const T& made(Slots<T>& slots, const Key& key, Make&& make);

    const Subject& subject_;
    std::map<int, experiment::Experiment> small_;  ///< by blocks
    mutable std::mutex mutex_;
    mutable std::atomic<std::int64_t> simulated_{0};
    Slots<PassPieces> passes_;
    Slots<StepPieces> steps_;
};

}  // namespace lockstep::search
