#include "gpu_double/dnn/backend_graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace lockstep::gpu_double {
namespace {

std::string name_of(const GraphTensor& t) { return fmt::format("tensor {} [{}]", t.id, fmt::join(t.extents, ", ")); }

/// How many tensors a mode reads; 0: the double doesn't know it.
std::size_t inputs_of(cudnnPointwiseMode_t mode) {
    switch (mode) {
        case CUDNN_POINTWISE_IDENTITY:
        case CUDNN_POINTWISE_EXP:
        case CUDNN_POINTWISE_LOG:
        case CUDNN_POINTWISE_GEN_INDEX: return 1;
        case CUDNN_POINTWISE_ADD:
        case CUDNN_POINTWISE_SUB:
        case CUDNN_POINTWISE_MUL:
        case CUDNN_POINTWISE_DIV:
        case CUDNN_POINTWISE_CMP_GE: return 2;
        case CUDNN_POINTWISE_BINARY_SELECT: return 3;
        default: return 0;
    }
}

std::string check_matmul(const GraphTensor& a, const GraphTensor& b, const GraphTensor& c) {
    const std::size_t rank = a.extents.size();
    bool fits = rank >= 3 && b.extents.size() == rank && c.extents.size() == rank;
    if (fits) {
        fits = a.extents[rank - 2] == c.extents[rank - 2] && a.extents[rank - 1] == b.extents[rank - 2] &&
               b.extents[rank - 1] == c.extents[rank - 1];
        for (std::size_t d = 0; d + 2 < rank; ++d)  // heads may share a matrix of b
            fits = fits && a.extents[d] == c.extents[d] && a.extents[d] % b.extents[d] == 0;
    }
    return fits ? std::string() : fmt::format("{} times {} is not {}", name_of(a), name_of(b), name_of(c));
}

std::string check_pointwise(const Graph& graph, const GraphOperation& o) {
    if (o.inputs().size() != inputs_of(o.pointwise))
        return fmt::format("a pointwise operation of mode {} with {} inputs", static_cast<int>(o.pointwise),
                           o.inputs().size());
    const GraphTensor& y = graph.tensor(o.y);
    for (const std::int64_t id : o.inputs()) {
        const GraphTensor& x = graph.tensor(id);
        bool fits = x.extents.size() == y.extents.size();
        for (std::size_t d = 0; fits && d < x.extents.size(); ++d)
            fits = x.extents[d] == y.extents[d] || x.extents[d] == 1;
        if (!fits) return fmt::format("{} does not repeat to {}", name_of(x), name_of(y));
    }
    const bool is_index = o.pointwise == CUDNN_POINTWISE_GEN_INDEX;
    if (is_index != (o.axis >= 0) || o.axis >= static_cast<std::int64_t>(y.extents.size()))
        return fmt::format("axis {} of a pointwise operation of mode {}", o.axis, static_cast<int>(o.pointwise));
    if ((y.type == CUDNN_DATA_BOOLEAN) != (o.pointwise == CUDNN_POINTWISE_CMP_GE))
        return fmt::format("{} is of truth values, or ought to be", name_of(y));
    if (o.t != 0 && graph.tensor(o.t).type != CUDNN_DATA_BOOLEAN)
        return fmt::format("{} chooses, but is not of truth values", name_of(graph.tensor(o.t)));
    return {};
}

std::string check_reduction(const GraphOperation& o, const GraphTensor& x, const GraphTensor& y) {
    if (o.reduction != CUDNN_REDUCE_TENSOR_ADD && o.reduction != CUDNN_REDUCE_TENSOR_MAX)
        return fmt::format("a reduction of mode {}", static_cast<int>(o.reduction));
    bool fits = x.extents.size() == y.extents.size();
    for (std::size_t d = 0; fits && d < x.extents.size(); ++d) fits = x.extents[d] % y.extents[d] == 0;
    return fits ? std::string() : fmt::format("{} does not reduce to {}", name_of(x), name_of(y));
}

bool is_channels_last(const GraphTensor& t) {
    if (t.extents.size() != 4) return false;
    const auto& e = t.extents;
    return t.strides == std::vector<std::int64_t>{e[1] * e[2] * e[3], 1, e[3] * e[1], e[1]};
}

std::string check_convolution(const Graph& graph, const GraphOperation::Convolution& c) {
    const GraphTensor &x = graph.tensor(c.image), &w = graph.tensor(c.weight), &y = graph.tensor(c.result);
    if (!is_channels_last(x) || !is_channels_last(w) || !is_channels_last(y))
        return "the double has only convolutions of channels-last images and weights";
    if (x.type != w.type || x.type != y.type) return "image, weight and result of a convolution are of several types";
    const auto pixels = [&](std::size_t d) {
        return (x.extents[d + 2] + 2 * c.padding[d] - w.extents[d + 2]) / c.stride[d] + 1;
    };
    const bool fits = c.stride.size() == 2 && c.padding.size() == 2 && c.stride[0] > 0 && c.stride[1] > 0 &&
                      x.extents[0] == y.extents[0] && x.extents[1] % w.extents[1] == 0 &&
                      w.extents[0] == y.extents[1] && w.extents[0] % (x.extents[1] / w.extents[1]) == 0 &&
                      y.extents[2] == pixels(0) && y.extents[3] == pixels(1);
    return fits ? std::string() : fmt::format("{} by {} is not {}", name_of(x), name_of(w), name_of(y));
}

}  // namespace

ConvolutionShape Graph::shape(const GraphOperation::Convolution& c) const {
    const auto side = [&](std::int64_t id) {
        const auto& e = tensor(id).extents;
        return ConvolutionShape::Side{e[0], e[1], e[2], e[3]};
    };
    return {side(c.image), side(c.result), side(c.weight), c.stride[0], c.stride[1], c.padding[0], c.padding[1]};
}

std::int64_t GraphTensor::elements() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : extents) n *= extent;
    return n;
}
std::int64_t GraphTensor::span() const {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
    return last + 1;
}

std::vector<std::int64_t> GraphOperation::inputs() const {
    std::vector<std::int64_t> ids;
    for (const std::int64_t id : {x, b, t})
        if (id != 0) ids.push_back(id);
    return ids;
}

std::string check_operation(const Graph& graph, const GraphOperation& o) {
    const GraphTensor &x = graph.tensor(o.x), &y = graph.tensor(o.y);
    if (y.is_by_value) return fmt::format("{} is a number, not a result", name_of(y));
    switch (o.kind) {
        case GraphOperation::Kind::matmul: return check_matmul(x, graph.tensor(o.b), y);
        case GraphOperation::Kind::pointwise: return check_pointwise(graph, o);
        case GraphOperation::Kind::reduction: return check_reduction(o, x, y);
        case GraphOperation::Kind::convolution: return check_convolution(graph, o.convolution);
        case GraphOperation::Kind::reshape:
            if (x.elements() == y.elements() && x.span() == y.span()) return {};
            return fmt::format("{} is not {} in another order", name_of(x), name_of(y));
    }
    return {};
}

std::string sort_operations(Graph& graph) {
    std::set<std::int64_t> made, results;
    for (const GraphOperation& o : graph.operations)
        if (!results.insert(o.y).second) return fmt::format("tensor {} is the result of two operations", o.y);
    for (const auto& [id, tensor] : graph.tensors) {
        if (results.contains(id)) continue;
        if (tensor.is_virtual) return fmt::format("virtual tensor {} is no operation's result", id);
        made.insert(id);
    }
    std::vector<GraphOperation> sorted, left = graph.operations;
    while (!left.empty()) {
        const auto ready = std::find_if(left.begin(), left.end(), [&](const GraphOperation& o) {
            const auto inputs = o.inputs();
            return std::all_of(inputs.begin(), inputs.end(), [&](std::int64_t id) { return made.contains(id); });
        });
        if (ready == left.end()) return fmt::format("tensor {} needs itself", left.front().y);
        made.insert(ready->y);
        sorted.push_back(*ready);
        left.erase(ready);
    }
    graph.operations = std::move(sorted);
    return {};
}

}  // namespace lockstep::gpu_double
