// cuDNN's three passes of a convolution behind one set of names: it has each question and each call three times.
#pragma once

#include <cudnn.h>

#include "gpu/dnn_descriptors.hpp"

namespace lockstep::gpu {

struct ConvolutionDescriptors {
    TensorDescriptor x, y;
    FilterDescriptor w;
    ConvolutionDescriptor convolution;
};

/// Addresses of one call; what a pass doesn't write it only reads.
struct ConvolutionCall {
    cudnnHandle_t handle;
    const ConvolutionDescriptors& d;
    void *x, *w, *y;
    void* workspace;
    std::size_t workspace_bytes;
    float beta;  ///< 1: adds to what is there
};

/// Each pass: its algorithms; `propose` fills results, fastest first by cuDNN's heuristics; `workspace` says what an
/// algorithm needs, or that it doesn't support the shape; `run` enqueues it.
struct ForwardPass {
    static constexpr const char* name = "forward";
    using Algorithm = cudnnConvolutionFwdAlgo_t;
    using Proposal = cudnnConvolutionFwdAlgoPerf_t;
    static constexpr int algorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    static cudnnStatus_t propose(cudnnHandle_t handle, const ConvolutionDescriptors& d, int* count, Proposal* results) {
        return cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(),
                                                      algorithms, count, results);
    }
    static cudnnStatus_t workspace(cudnnHandle_t handle, const ConvolutionDescriptors& d, Algorithm algorithm,
                                   std::size_t* bytes) {
        return cudnnGetConvolutionForwardWorkspaceSize(handle, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(),
                                                       algorithm, bytes);
    }
    static cudnnStatus_t run(const ConvolutionCall& c, Algorithm algorithm) {
        const float alpha = 1;
        return cudnnConvolutionForward(c.handle, &alpha, c.d.x.get(), c.x, c.d.w.get(), c.w, c.d.convolution.get(),
                                       algorithm, c.workspace, c.workspace_bytes, &c.beta, c.d.y.get(), c.y);
    }
};

struct BackwardDataPass {
    static constexpr const char* name = "backward data";
    using Algorithm = cudnnConvolutionBwdDataAlgo_t;
    using Proposal = cudnnConvolutionBwdDataAlgoPerf_t;
    static constexpr int algorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    static cudnnStatus_t propose(cudnnHandle_t handle, const ConvolutionDescriptors& d, int* count, Proposal* results) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.w.get(), d.y.get(), d.convolution.get(), d.x.get(),
                                                           algorithms, count, results);
    }
    static cudnnStatus_t workspace(cudnnHandle_t handle, const ConvolutionDescriptors& d, Algorithm algorithm,
                                   std::size_t* bytes) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, d.w.get(), d.y.get(), d.convolution.get(),
                                                            d.x.get(), algorithm, bytes);
    }
    static cudnnStatus_t run(const ConvolutionCall& c, Algorithm algorithm) {
        const float alpha = 1;
        return cudnnConvolutionBackwardData(c.handle, &alpha, c.d.w.get(), c.w, c.d.y.get(), c.y, c.d.convolution.get(),
                                            algorithm, c.workspace, c.workspace_bytes, &c.beta, c.d.x.get(), c.x);
    }
};

struct BackwardWeightsPass {
    static constexpr const char* name = "backward weights";
    using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
    using Proposal = cudnnConvolutionBwdFilterAlgoPerf_t;
    static constexpr int algorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
    static cudnnStatus_t propose(cudnnHandle_t handle, const ConvolutionDescriptors& d, int* count, Proposal* results) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.x.get(), d.y.get(), d.convolution.get(),
                                                             d.w.get(), algorithms, count, results);
    }
    static cudnnStatus_t workspace(cudnnHandle_t handle, const ConvolutionDescriptors& d, Algorithm algorithm,
                                   std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, d.x.get(), d.y.get(), d.convolution.get(),
                                                              d.w.get(), algorithm, bytes);
    }
    static cudnnStatus_t run(const ConvolutionCall& c, Algorithm algorithm) {
        const float alpha = 1;
        return cudnnConvolutionBackwardFilter(c.handle, &alpha, c.d.x.get(), c.x, c.d.y.get(), c.y,
                                              c.d.convolution.get(), algorithm, c.workspace, c.workspace_bytes, &c.beta,
                                              c.d.w.get(), c.w);
    }
};

}  // namespace lockstep::gpu
