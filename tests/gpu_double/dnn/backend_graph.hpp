// Graphs of operations of the cuDNN double: what they mean, computed with floats.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu_double/dnn/convolution.hpp"

namespace lockstep::gpu_double {

struct GraphTensor {
    std::int64_t id = 0;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<std::int64_t> extents, strides;
    std::int64_t alignment = 1;
    bool is_virtual = false, is_by_value = false;

    std::int64_t elements() const;
    /// From the first element to behind the last one.
    std::int64_t span() const;
    bool is_in_memory() const { return !is_virtual && !is_by_value; }
    bool operator==(const GraphTensor&) const = default;
};

struct GraphOperation {
    enum class Kind { matmul, pointwise, reduction, reshape, convolution } kind = Kind::pointwise;
    cudnnPointwiseMode_t pointwise = CUDNN_POINTWISE_IDENTITY;
    cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
    std::int64_t axis = -1;
    std::int64_t x = 0, b = 0, t = 0, y = 0;  ///< ids; 0: none. matmul: y = x b
    /// convolution, under the names of the forward pass: which ids those of image, weight and result are.
    struct Convolution {
        ConvolutionPass pass = ConvolutionPass::forward;
        std::int64_t image = 0, weight = 0, result = 0;
        std::vector<std::int64_t> stride, padding;
        float alpha = 1, beta = 0;
    } convolution;

    std::vector<std::int64_t> inputs() const;
};

struct Graph {
    std::map<std::int64_t, GraphTensor> tensors;
    std::vector<GraphOperation> operations;  ///< each after those whose results it reads

    const GraphTensor& tensor(std::int64_t id) const { return tensors.at(id); }
    ConvolutionShape shape(const GraphOperation::Convolution& convolution) const;
};

/// What is wrong with an operation's tensors; empty: nothing.
std::string check_operation(const Graph& graph, const GraphOperation& operation);
/// Puts the operations in order; what is wrong: a value that nobody or two make, or that needs itself.
std::string sort_operations(Graph& graph);

/// Addresses of the tensors in memory, values of the numbers.
struct GraphCall {
    std::shared_ptr<const Graph> graph;
    std::map<std::int64_t, void*> memory;
    std::map<std::int64_t, float> numbers;
    bool rounds_to_tf32 = false;  ///< factors of convolutions in fp32
};
void run_graph(const GraphCall& call);

}  // namespace lockstep::gpu_double
