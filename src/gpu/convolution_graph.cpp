#include "gpu/convolution_graph.hpp"

namespace lockstep::gpu {
namespace {

/// Strides of [n, c, h, w] stored as [n, h, w, c].
DnnGraph::Extents channels_last(const DnnGraph::Extents& e) { return {e[1] * e[2] * e[3], 1, e[3] * e[1], e[1]}; }

}  // namespace

DnnGraph make_convolution_graph(const step::Convolution& c, DType dtype, const ConvolutionAlignments& alignments,
                                bool adds) {
    DnnGraph graph;
    const auto tensor = [&](const DnnGraph::Extents& extents, std::int64_t alignment) {
        return graph.memory(dtype, extents, channels_last(extents), alignment);
    };
    const DnnGraph::Tensor x = tensor({c.n, c.in_channels, c.height, c.width}, alignments.x);
    const DnnGraph::Tensor w =
        tensor({c.out_channels, c.in_channels / c.groups, c.kernel, c.width_of_kernel()}, alignments.w);
    const DnnGraph::Tensor y = tensor({c.n, c.out_channels, c.out_height(), c.out_width()}, alignments.y);
    graph.convolution(c, x, w, y, adds);
    return graph;
}

const char* name_of(step::Pass pass) {
    switch (pass) {
        case step::Pass::forward: return "forward";
        case step::Pass::backward_data: return "backward data";
        case step::Pass::backward_weights: break;
    }
    return "backward weights";
}

}  // namespace lockstep::gpu
