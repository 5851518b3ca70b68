#include "gpu/dnn_graph.hpp"

#include "gpu/dnn_descriptors.hpp"

namespace lockstep::gpu {
namespace {

DnnGraph::Extents packed(const DnnGraph::Extents& e) { return {e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}; }

/// cuDNN's names for a pass of a convolution.
struct ConvolutionNames {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t x, w, y, how, alpha, beta;
};
ConvolutionNames names_of(step::Pass pass) {
    switch (pass) {
        case step::Pass::forward:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
        case step::Pass::backward_data:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
        case step::Pass::backward_weights: break;
    }
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

}  // namespace

// ---- tensors

DnnGraph::Tensor DnnGraph::add_tensor(cudnnDataType_t dtype, const Extents& extents, const Extents& strides,
                                      std::int64_t alignment, cudnnBackendAttributeName_t special, bool is_special) {
    const Tensor tensor{static_cast<std::int64_t>(tensors_.size()) + 1, extents, strides};
    DnnDescriptor& d = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id);
    d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, dtype);
    d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(extents));
    d.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
    d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    d.set(special, is_special);
    d.finalize();
    return tensor;
}

DnnGraph::Tensor DnnGraph::memory(DType dtype, const Extents& extents, const Extents& strides, std::int64_t alignment) {
    return add_tensor(dnn_type(dtype), extents, strides, alignment, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
}
DnnGraph::Tensor DnnGraph::inside(const Extents& extents, cudnnDataType_t dtype) {
    return inside(extents, packed(extents), dtype);
}
DnnGraph::Tensor DnnGraph::inside(const Extents& extents, const Extents& strides, cudnnDataType_t dtype) {
    return add_tensor(dtype, extents, strides, 16, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
}
DnnGraph::Tensor DnnGraph::number(float value) {
    const Tensor tensor =
        add_tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, 16, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    numbers_.emplace_back(tensor.id, value);
    return tensor;
}

// ---- operations

DnnDescriptor& DnnGraph::add_mode(cudnnBackendDescriptorType_t type) { return modes_.emplace_back(type); }
DnnDescriptor& DnnGraph::add_operation(cudnnBackendDescriptorType_t type) { return operations_.emplace_back(type); }

void DnnGraph::matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
    DnnDescriptor& how = add_mode(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finalize();
    DnnDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a));
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b));
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(c));
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    operation.finalize();
}

void DnnGraph::add_pointwise(const Pointwise& p, const Tensor& x, const Tensor* b, const Tensor* choice,
                             const Tensor& y) {
    DnnDescriptor& how = add_mode(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p.mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, p.compute);
    if (p.axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, p.axis);
    how.finalize();
    DnnDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(x));
    if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(*b));
    if (choice != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(*choice));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(y));
    operation.finalize();
}

void DnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y) {
    add_pointwise({mode}, x, nullptr, nullptr, y);
}
void DnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& b, const Tensor& y) {
    add_pointwise({mode}, x, &b, nullptr, y);
}
DnnGraph::Tensor DnnGraph::apply(cudnnPointwiseMode_t mode, const Tensor& x) {
    const Tensor y = inside(x.extents);
    add_pointwise({mode}, x, nullptr, nullptr, y);
    return y;
}
DnnGraph::Tensor DnnGraph::apply(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& b) {
    const Tensor y = inside(x.extents);
    add_pointwise({mode}, x, &b, nullptr, y);
    return y;
}

DnnGraph::Tensor DnnGraph::lower_triangle(const Tensor& x, const Tensor& otherwise) {
    const Tensor row = inside(x.extents, CUDNN_DATA_INT32), column = inside(x.extents, CUDNN_DATA_INT32);
    add_pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2}, x, nullptr, nullptr, row);
    add_pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3}, x, nullptr, nullptr, column);
    const Tensor is_seen = inside(x.extents, CUDNN_DATA_BOOLEAN), y = inside(x.extents);
    add_pointwise({CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN}, row, &column, nullptr, is_seen);
    add_pointwise({CUDNN_POINTWISE_BINARY_SELECT}, x, &otherwise, &is_seen, y);
    return y;
}

void DnnGraph::reduce(cudnnReduceTensorOp_t mode, const Tensor& x, const Tensor& y) {
    DnnDescriptor& how = add_mode(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finalize();
    DnnDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x));
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(y));
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    operation.finalize();
}

void DnnGraph::reshape(const Tensor& x, const Tensor& y) {
    DnnDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x));
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(y));
    operation.finalize();
}

void DnnGraph::convolution(const step::Convolution& c, const Tensor& x, const Tensor& w, const Tensor& y, bool adds) {
    using Pair = std::array<std::int64_t, 2>;
    const Pair stride{c.stride, c.stride}, padding{c.padding, c.horizontal_padding()}, dilation{1, 1};
    const auto span = [](const Pair& pair) { return std::span<const std::int64_t>(pair); };
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;  // the kernel is not flipped
    DnnDescriptor& how = add_mode(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
    how.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, span(stride));
    how.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, span(padding));
    how.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, span(padding));
    how.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, span(dilation));
    how.finalize();
    const ConvolutionNames names = names_of(c.pass);
    const float alpha = 1, beta = adds ? 1 : 0;
    DnnDescriptor& operation = add_operation(names.operation);
    operation.set(names.x, of(x));
    operation.set(names.w, of(w));
    operation.set(names.y, of(y));
    operation.set(names.how, how);
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 1, &beta);
    operation.finalize();
}

std::vector<cudnnBackendDescriptor_t> DnnGraph::operations() const {
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const DnnDescriptor& operation : operations_) operations.push_back(operation.get());
    return operations;
}

}  // namespace lockstep::gpu
