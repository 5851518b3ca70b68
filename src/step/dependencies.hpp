// Which earlier ops an op must wait for, from the tensors they read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// The first element of a view in its storage; of a RingPart as the rank at coordinate 0 of the ring's axis sees it.
/// (Two parts of a ring overlap on all ranks or on none, so that one rank stands for all where only overlaps count.)
std::int64_t first_element(const plan::Mesh& mesh, const Tensor& view);

/// The storage of a graph's tensors cut at the edges of all views, so that two tensors touch the same elements exactly
/// when they share a segment. The segments of a tensor are consecutive; each copy (Tensor::slots) has its own. Ids must
/// be in range and views inside their storage (check_structure).
class Segments {
public:
    explicit Segments(const StepGraph& graph);

    struct Range {
        std::int32_t first = 0;
        std::int32_t count = 0;
    };
    /// Segments of a tensor for a micro-batch, from 0 on.
    Range of(TensorId tensor, std::int32_t micro_batch) const {
        const Place& place = places_[tensor.index()];
        const std::int32_t slot = place.slots == 1 ? 0 : micro_batch % place.slots;
        return {place.first + place.stride * slot, place.count};
    }
    std::size_t count() const { return count_; }

private:
    struct Place {
        std::int32_t first = 0, count = 1, stride = 1, slots = 1;
    };
    std::vector<Place> places_;
    std::size_t count_ = 0;
};

/// Follows one rank's issue order over steps and micro-batches and finds, for each op, the earlier ops whose results it
/// reads (read after write), or whose operands it overwrites (write after read, write after write), on the same
/// elements: views of one storage conflict only where they overlap. Values of Lifetime::micro_batch of different
/// micro-batches share storage, unless the tensor has several slots. Operands of messages count in their own
/// micro-batch.
class DependencyTracker {
public:
    explicit DependencyTracker(const StepGraph& graph);
    /// Registers the next op in issue order under the caller's number `sequence` (rising) and returns the sequences it
    /// depends on, ascending, each once. Ops on the same stream are included only when data connects them. Of several
    /// readers on one stream only the last is remembered: streams run in order. Valid until the next call.
    const std::vector<std::int64_t>& next(const OpInstance& op, std::int64_t sequence);
    /// Forgets all ops, to follow another rank; cheaper than another tracker.
    void restart() { ++run_; }

private:
    struct Reader {
        std::int32_t stream = 0;
        std::int64_t sequence = 0;
    };
    struct Segment {
        std::int64_t writer = -1;
        std::vector<Reader> readers;
        std::int32_t run = 0;  ///< what it says is of this run
    };
    Segment& segment(std::int32_t number);
    static void remember_reader(Segment& segment, StreamId stream, std::int64_t sequence);

    Segments places_;
    std::vector<Segment> segments_;
    std::int32_t run_ = 0;
    std::vector<std::int64_t> found_;
    std::vector<std::int32_t> read_;  // segments
};

}  // namespace lockstep::step
