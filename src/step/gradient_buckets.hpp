// Gradient buckets of data parallelism: which gradients travel together, and the ops that carry them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "step/op.hpp"
#include "step/tensor.hpp"

namespace lockstep::step {

struct Assembly;

/// Fills buckets as PyTorch's DistributedDataParallel does: gradients in the given order; a bucket closes when it holds
/// at least its limit, the first one's being `first`. Returns indices into `sizes`, bucket by bucket.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<Bytes>& sizes, Bytes first, Bytes limit);

struct GradientBucket {
    std::vector<model::ParameterId> parameters;  ///< in the order of their place in the bucket
    std::vector<std::int64_t> first_element;
    std::int64_t elements = 0;
    TensorId storage;             ///< what travels
    TensorId gradients;           ///< the gradients' own flat storage, when they are views
    std::vector<TensorId> parts;  ///< of the storage, by parameter, when gradients are copied in and out
    std::size_t missing = 0;      ///< gradients of this pass still to come
};

/// Empty when nothing is communicated (dp = 1).
struct GradientBuckets {
    std::vector<GradientBucket> buckets;  ///< in launch order
    std::vector<std::int32_t> bucket_of;  ///< by parameter; -1: not trained
    StreamId stream;
    CommunicatorId communicator;
    std::size_t launched = 0;
};

/// Lays out the buckets of all trainable parameters in reverse order of first use, and makes their tensors.
void make_buckets(Assembly& a);
/// Where the gradient of a parameter lives: a view into its bucket's flat gradients, or invalid for one of its own.
TensorId bucket_view(Assembly& a, model::ParameterId id, std::string name);
/// The parameter's gradient is complete (in the last micro-batch): copies it in and, when plan.overlap, launches every
/// bucket whose turn has come.
void gradient_is_ready(Assembly& a, model::ParameterId id);
/// What is left after the backward pass: the collectives without overlap, and the copies out of the buckets.
void finish_buckets(Assembly& a);

}  // namespace lockstep::step
