// A graph of operations on four-dimensional tensors, of cuDNN's backend interface.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "gpu/dnn_backend.hpp"
#include "step/op.hpp"

namespace lockstep::gpu {

/// Operations in the order of their data. Inside, numbers are fp32 unless said otherwise.
class DnnGraph {
public:
    using Extents = std::array<std::int64_t, 4>;
    struct Tensor {
        std::int64_t id = 0;
        Extents extents{}, strides{};  ///< in elements
    };

    /// In device memory; whoever runs the graph gives its address, which `alignment` bytes divide.
    Tensor memory(DType dtype, const Extents& extents, const Extents& strides, std::int64_t alignment = 16);
    /// Between operations only. Row-major unless strides are given.
    Tensor inside(const Extents& extents, cudnnDataType_t dtype = CUDNN_DATA_FLOAT);
    Tensor inside(const Extents& extents, const Extents& strides, cudnnDataType_t dtype);
    /// One number.
    Tensor number(float value);

    /// c = a b of the last two dimensions; the others are batches, and of one where b is shared.
    void matmul(const Tensor& a, const Tensor& b, const Tensor& c);
    /// y = mode(x) or mode(x, b); extents of 1 repeat.
    void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y);
    void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& b, const Tensor& y);
    /// The same into a new inside tensor of x's extents.
    Tensor apply(cudnnPointwiseMode_t mode, const Tensor& x);
    Tensor apply(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& b);
    /// x where its last index is at most the one before, else `otherwise`.
    Tensor lower_triangle(const Tensor& x, const Tensor& otherwise);
    /// Over the dimensions in which y's extent is 1.
    void reduce(cudnnReduceTensorOp_t mode, const Tensor& x, const Tensor& y);
    void reshape(const Tensor& x, const Tensor& y);
    /// What the pass makes of the other two: y of x and w, x of y and w, or w of x and y. Extents of x and y: [n,
    /// channels, height, width], of w: [out, in of a group, kernel, kernel]. `adds`: to what is there.
    void convolution(const step::Convolution& c, const Tensor& x, const Tensor& w, const Tensor& y, bool adds);

    std::vector<cudnnBackendDescriptor_t> operations() const;
    std::span<const std::pair<std::int64_t, float>> numbers() const { return numbers_; }

private:
    struct Pointwise {
        cudnnPointwiseMode_t mode;
        cudnnDataType_t compute = CUDNN_DATA_FLOAT;
        std::int64_t axis = -1;
    };
    Tensor add_tensor(cudnnDataType_t dtype, const Extents& extents, const Extents& strides, std::int64_t alignment,
                      cudnnBackendAttributeName_t special, bool is_special);
    DnnDescriptor& add_mode(cudnnBackendDescriptorType_t type);
    DnnDescriptor& add_operation(cudnnBackendDescriptorType_t type);
    void add_pointwise(const Pointwise& how, const Tensor& x, const Tensor* b, const Tensor* choice, const Tensor& y);
    const DnnDescriptor& of(const Tensor& tensor) const { return tensors_[static_cast<std::size_t>(tensor.id - 1)]; }

    std::deque<DnnDescriptor> tensors_, modes_, operations_;
    std::vector<std::pair<std::int64_t, float>> numbers_;
};

}  // namespace lockstep::gpu
