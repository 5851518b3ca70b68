#include "step/dependencies.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::step {

namespace {

/// Edges of the views in each storage that has any, in elements, sorted by storage.
class Edges {
public:
    explicit Edges(const StepGraph& graph) : begin_(graph.tensors.size() + 1, 0) {
        std::vector<std::pair<std::int32_t, std::int64_t>> all;
        for (const Tensor& tensor : graph.tensors) {
            if (!tensor.view) continue;
            const std::int64_t first = first_element(graph.mesh, tensor);
            const std::int32_t storage = tensor.view->of.value;
            for (const std::int64_t edge :
                 {std::int64_t{0}, first, first + tensor.elements(), graph.tensor(tensor.view->of).elements()})
                all.emplace_back(storage, edge);
        }
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        for (const auto& [storage, edge] : all) {
            ++begin_[static_cast<std::size_t>(storage) + 1];
            elements_.push_back(edge);
        }
        for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    }
    /// Segments before `element` in the storage.
    std::int32_t before(std::size_t storage, std::int64_t element) const {
        const auto first = elements_.begin() + begin_[storage];
        return static_cast<std::int32_t>(std::lower_bound(first, elements_.begin() + begin_[storage + 1], element) -
                                         first);
    }
    std::int32_t segments(std::size_t storage) const { return std::max(1, begin_[storage + 1] - begin_[storage] - 1); }

private:
    std::vector<std::int32_t> begin_;  // by storage
    std::vector<std::int64_t> elements_;
};

}  // namespace

std::int64_t first_element(const plan::Mesh& mesh, const Tensor& view) {
    if (!view.view->ring) return view.view->first_element;
    const int parts = mesh.extent(view.view->ring->axis);
    const int part = (view.view->ring->offset % parts + parts) % parts;
    return view.view->first_element + part * view.elements();
}

Segments::Segments(const StepGraph& graph) : places_(graph.tensors.size()) {
    const Edges edges(graph);
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (tensor.view) continue;
        const std::int32_t segments = edges.segments(i);
        places_[i] = {static_cast<std::int32_t>(count_), segments, segments, tensor.slots};
        count_ += static_cast<std::size_t>(segments) * static_cast<std::size_t>(tensor.slots);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (!tensor.view) continue;
        const std::size_t storage = tensor.view->of.index();
        const std::int64_t first = first_element(graph.mesh, tensor);
        const std::int32_t begin = edges.before(storage, first);
        const Place& whole = places_[storage];
        places_[i] = {whole.first + begin, edges.before(storage, first + tensor.elements()) - begin, whole.stride,
                      whole.slots};
    }
}

DependencyTracker::DependencyTracker(const StepGraph& graph) : places_(graph), segments_(places_.count()) {}

DependencyTracker::Segment& DependencyTracker::segment(std::int32_t number) {
    Segment& segment = segments_[static_cast<std::size_t>(number)];
    if (segment.run != run_) {
        segment.run = run_;
        segment.writer = -1;
        segment.readers.clear();
    }
    return segment;
}

const std::vector<std::int64_t>& DependencyTracker::next(const OpInstance& op, std::int64_t sequence) {
    found_.clear();
    read_.clear();
    for_each_dependence(op, [&](TensorId id, std::int32_t micro_batch, const Write* written) {
        const Segments::Range range = places_.of(id, micro_batch);
        for (std::int32_t s = range.first; s < range.first + range.count; ++s) {
            Segment& touched = segment(s);
            if (touched.writer >= 0 && touched.writer != sequence) found_.push_back(touched.writer);
            if (!written) {
                read_.push_back(s);
                continue;
            }
            for (const Reader& reader : touched.readers) found_.push_back(reader.sequence);
            touched.writer = sequence;
            touched.readers.clear();
        }
    });
    for (const std::int32_t s : read_) remember_reader(segments_[static_cast<std::size_t>(s)], op.op->stream, sequence);
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return found_;
}

void DependencyTracker::remember_reader(Segment& segment, StreamId stream, std::int64_t sequence) {
    if (segment.writer == sequence) return;  // whoever waits for the writer waits for the reader
    for (Reader& reader : segment.readers)
        if (reader.stream == stream.value) {
            reader.sequence = sequence;
            return;
        }
    segment.readers.push_back({stream.value, sequence});
}

}  // namespace lockstep::step
