#include "step/dependencies.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::step {

Segments::Segments(const StepGraph& graph) : places_(graph.tensors.size()) {
    // Edges of the views in each storage, in elements; a storage without views is one segment.
    std::vector<std::pair<TensorId, std::int64_t>> edges;
    for (const Tensor& tensor : graph.tensors) {
        if (!tensor.view) continue;
        edges.emplace_back(tensor.view->of, tensor.view->first_element);
        edges.emplace_back(tensor.view->of, tensor.view->first_element + tensor.elements());
    }
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (graph.tensors[i].view) continue;
        edges.emplace_back(TensorId{static_cast<std::int32_t>(i)}, 0);
        edges.emplace_back(TensorId{static_cast<std::int32_t>(i)}, graph.tensors[i].elements());
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

    auto position = [&](TensorId root, std::int64_t element) {
        return std::lower_bound(edges.begin(), edges.end(), std::make_pair(root, element)) - edges.begin();
    };
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (graph.tensors[i].view) continue;
        const TensorId root{static_cast<std::int32_t>(i)};
        const auto segments = position(root, graph.tensors[i].elements()) - position(root, 0);
        places_[i] = {static_cast<std::int32_t>(count_), static_cast<std::int32_t>(segments),
                      static_cast<std::int32_t>(segments), graph.tensors[i].slots};
        count_ += static_cast<std::size_t>(segments) * static_cast<std::size_t>(graph.tensors[i].slots);
    }
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (!tensor.view) continue;
        const TensorId root = tensor.view->of;
        const auto begin = position(root, tensor.view->first_element);
        const auto end = position(root, tensor.view->first_element + tensor.elements());
        const Place& whole = places_[root.index()];
        places_[i] = {whole.first + static_cast<std::int32_t>(begin - position(root, 0)),
                      static_cast<std::int32_t>(end - begin), whole.stride, whole.slots};
    }
}

DependencyTracker::DependencyTracker(const StepGraph& graph) : places_(graph), segments_(places_.count()) {}

const std::vector<std::int64_t>& DependencyTracker::next(const OpInstance& op, std::int64_t sequence) {
    found_.clear();
    auto each_segment = [&](TensorId tensor, auto&& visit) {
        const Segments::Range range = places_.of(tensor, op.micro_batch);
        for (std::int32_t s = range.first; s < range.first + range.count; ++s)
            visit(segments_[static_cast<std::size_t>(s)]);
    };
    auto follow = [&](std::int64_t earlier) {
        if (earlier >= 0) found_.push_back(earlier);
    };
    for (const TensorId id : op.op->in) each_segment(id, [&](const Segment& segment) { follow(segment.writer); });
    for (const Write& write : op.op->out)
        each_segment(write.tensor, [&](const Segment& segment) {
            follow(segment.writer);
            for (const Reader& reader : segment.readers) follow(reader.sequence);
        });

    const std::int32_t stream = op.op->stream.value;
    for (const TensorId id : op.op->in)
        each_segment(id, [&](Segment& segment) {
            const auto known = std::find_if(segment.readers.begin(), segment.readers.end(),
                                            [&](const Reader& reader) { return reader.stream == stream; });
            if (known == segment.readers.end())
                segment.readers.push_back({stream, sequence});
            else
                known->sequence = sequence;
        });
    for (const Write& write : op.op->out)
        each_segment(write.tensor, [&](Segment& segment) {
            segment.writer = sequence;
            segment.readers.clear();
        });
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return found_;
}

}  // namespace lockstep::step
