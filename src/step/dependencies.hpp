// Which earlier ops an op must wait for, from the tensors they read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

/// The storage of a graph's tensors cut at the edges of all views, so that two tensors touch the same elements exactly
/// when they share a segment. The segments of a tensor are consecutive; each copy (Tensor::slots) has its own.
class Segments {
public:
    explicit Segments(const StepGraph& graph);

    struct Range {
        std::int32_t first = 0;
        std::int32_t count = 0;
    };
    /// Segments of a tensor for a micro-batch.
    Range of(TensorId tensor, std::int32_t micro_batch) const {
        const Place& place = places_[tensor.index()];
        return {place.first + place.stride * (micro_batch % place.slots), place.count};
    }
    std::size_t count() const { return count_; }

private:
    struct Place {
        std::int32_t first = 0, count = 0, stride = 0, slots = 1;
    };
    std::vector<Place> places_;
    std::size_t count_ = 0;
};

/// Follows one rank's issue order over steps and micro-batches and finds, for each op, the earlier ops whose results it
/// reads (read after write), or whose operands it overwrites (write after read, write after write), on the same
/// elements: views of one storage conflict only where they overlap. Values of Lifetime::micro_batch of different
/// micro-batches share storage, unless the tensor has several slots.
class DependencyTracker {
public:
    explicit DependencyTracker(const StepGraph& graph);
    /// Registers the next op in issue order under the caller's number `sequence` (rising) and returns the sequences it
    /// depends on, ascending, each once. Ops on the same stream are included only when data connects them. Of several
    /// readers on one stream only the last is remembered: streams run in order. Valid until the next call.
    const std::vector<std::int64_t>& next(const OpInstance& op, std::int64_t sequence);

private:
    struct Reader {
        std::int32_t stream = 0;
        std::int64_t sequence = 0;
    };
    struct Segment {
        std::int64_t writer = -1;
        std::vector<Reader> readers;
    };
    Segments places_;
    std::vector<Segment> segments_;
    std::vector<std::int64_t> found_;
};

}  // namespace lockstep::step
