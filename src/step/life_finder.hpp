// Finds when each storage of a rank holds something, from the order in which its ops may run.
#pragma once

#include <cstdint>
#include <vector>

#include "step/completion_clock.hpp"
#include "step/dependencies.hpp"
#include "step/graph.hpp"
#include "step/life.hpp"

namespace lockstep::step {

/// Lives in one of many equal steps that follow one another without a barrier. Storages the program does not touch have
/// none. Carried ones live always, in all their copies; the loss and the reduced gradients to the end of the step. Of
/// all others a life begins where a micro-batch (Lifetime::micro_batch) touches a copy first or an op overwrites all of
/// it, or a part of a ring that was written before (the parts are written anew together), and ends where it is touched
/// last before the next. Positions are those of the compute stream: what an op of
/// another stream touches lives from where the last compute op is that is certainly done before it (CompletionClock),
/// to where the compute stream has waited for it; in the step before and after, if not in this one.
class LifeFinder {
public:
    explicit LifeFinder(const StepGraph& graph);
    Lives find(const RankClass& rank_class);

private:
    /// What is known of a tensor's storage.
    struct Place {
        TensorId storage;
        std::int32_t first_copy = 0;
        std::int32_t slots = 1;
        enum class Part { whole, some, of_ring } part = Part::whole;
        Lifetime lifetime = Lifetime::micro_batch;
        std::uint64_t ring_bit = 0;  // of_ring: which part, modulo 64
    };
    /// What a copy holds from one first write on.
    struct Value {
        std::int32_t before = -1;  // the copy's value before
        std::int32_t copy = 0;
        std::int32_t begin = 0, end = 0;
    };
    struct Copy {
        std::int32_t run = 0;  // what it says is of this run
        std::int32_t micro_batch = -1;
        std::int32_t value = -1;  // its last
        std::uint64_t parts = 0;  // of the ring that this value has written
    };
    /// Values touched on a stream that is not the compute stream, which has waited for the first `released`.
    struct Pending {
        std::int32_t value = 0;
        std::int32_t position = 0;
    };
    struct Queue {
        std::vector<Pending> touched;
        std::size_t released = 0;
    };
    enum class Step { this_one, next };

    bool is_foldable(const std::vector<Issue>& pass) const;
    Program fold(const Program& program) const;
    void restart();
    void visit(const OpInstance& op);
    void touch(const OpInstance& op, std::int32_t position);
    std::int32_t copy_of(const Place& place, std::int32_t micro_batch);
    void add_value(std::int32_t copy, std::int32_t begin, std::int32_t end);
    void release(std::int32_t position, Step step);
    void follow_next_step(const std::vector<OpInstance>& ops);
    bool is_all_released() const;
    void keep_to_end(TensorId tensor, std::int32_t last);
    Lives finish(std::int32_t last);

    const StepGraph& graph_;
    std::vector<Place> places_;  // by tensor
    std::vector<TensorId> storage_of_copy_;
    StreamId compute_;
    DependencyTracker tracker_;
    CompletionClock clock_;
    std::vector<Copy> copies_;
    std::int32_t run_ = 0;
    std::vector<Value> values_;
    std::vector<std::int32_t> touched_;  // copies
    std::vector<Queue> queues_;          // by stream
    std::int32_t last_early_ = -1;       // position of the last op that may run in the step before
    Lives lives_;
};

}  // namespace lockstep::step
