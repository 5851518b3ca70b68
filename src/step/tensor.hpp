// The tensor table of a step graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/ids.hpp"
#include "base/shape.hpp"
#include "model/layer.hpp"
#include "plan/mesh.hpp"

namespace lockstep::step {

enum class Role {
    input,          ///< samples and labels
    parameter,      ///< what the kernels read
    gradient,       ///< as the backward pass writes it
    main_gradient,  ///< the fp32 sum an optimizer reads where it is not `gradient`
    master_weight,  ///< fp32 copy of a low precision parameter
    optimizer_state,
    buffer,  ///< running statistics
    activation,
    communication,  ///< buckets and message buffers
    scalar,         ///< loss, loss scale, found-inf
    workspace
};
std::string_view to_string(Role role);

/// How long a value lives: one pass of one micro-batch, one step, or from step to step (then each step makes a new
/// version of it).
enum class Lifetime { micro_batch, step, carried };

/// Physical order of a [n, c, h, w] tensor. `opaque` is an executor's own packed order, of the same element count.
enum class Layout { row_major, channels_last, opaque };

struct Tensor;
using TensorId = Id<Tensor>;

/// One of the equal parts of a storage that go round with the ranks: part (coordinate + offset) modulo extent of the
/// axis, each of the view's size.
struct RingPart {
    plan::Axis axis = plan::Axis::tp;
    int offset = 0;
};
/// A tensor that is part of another's storage, in elements of the same dtype.
struct View {
    TensorId of;  ///< never itself a view
    std::int64_t first_element = 0;
    std::optional<RingPart>
        ring;  ///< then first_element is that of part 0; all views of the storage are rings or whole
};

/// What a tensor holds before the first step.
struct Initial {
    enum class Kind {
        none,
        zero,
        one,
        normal,
        token_ids,
        class_labels,
        value,
        part_of
    } kind = Kind::none;     ///< part_of: as the views of Tensor::part_of say
    double scale = 0;        ///< standard deviation of normal; the value
    std::int64_t range = 0;  ///< ids and labels are below it
    std::uint64_t stream =
        0;  ///< of the counter-based generator; the counter is slot x elements of the global shape + the row-major
            ///< index in the global shape (so the samples of a step don't depend on how it is split)
};

/// This rank's part of a global tensor: extent `dimension` is split evenly over a mesh axis.
struct Shard {
    int dimension = 0;
    plan::Axis axis = plan::Axis::dp;
    /// zigzag: the extent has 2 n parts for n ranks, and rank r holds parts r and 2 n - 1 - r, one behind the other:
    /// all ranks have equal work under a causal mask. A further shard of the dimension splits what the rank holds in
    /// two such parts, in its local order.
    enum class Order { contiguous, zigzag } order = Order::contiguous;
};

struct Tensor {
    std::string name;
    Shape shape;                ///< of this rank's part
    std::vector<Shard> shards;  ///< empty: every rank holds all of it
    DType dtype = DType::fp32;
    Role role = Role::activation;
    Lifetime lifetime = Lifetime::micro_batch;
    Layout layout = Layout::row_major;
    std::optional<View> view;
    Initial initial;
    model::ParameterId parameter;  ///< whose value, gradient or optimizer state it is; invalid: nobody's, or a flat one
    TensorId part_of;              ///< the flat tensor of which this is an even part, by `shards`; invalid: none
    /// Copies of the storage: micro-batch m uses copy m modulo `slots`. Inputs that wait for their
    /// micro-batch have one each; more passes in flight at once (pipelines) need more.
    std::int32_t slots = 1;

    std::int64_t elements() const { return shape.elements(); }
    Bytes bytes() const { return static_cast<double>(elements()) * size_of(dtype); }  ///< of one copy
    std::int32_t slot_of(std::int32_t micro_batch) const { return micro_batch % slots; }
    /// What one copy takes in memory: up to a multiple of 64. Of a storage, not of a view.
    std::int64_t copy_bytes() const { return (static_cast<std::int64_t>(bytes().value) + 63) / 64 * 64; }
};

/// Global shape: each sharded extent times the extent of its axis.
Shape global_shape(const Tensor& tensor, const plan::Mesh& mesh);
/// Indices along a dimension of a rank's part: `count` from `global` on, of local indices from `local` on.
struct IndexRun {
    std::int64_t local = 0, global = 0, count = 0;
};
/// One run for each dimension, or two where it is split in zigzag.
std::vector<std::vector<IndexRun>> shard_runs(const Tensor& tensor, const plan::Mesh& mesh, int rank);

}  // namespace lockstep::step
