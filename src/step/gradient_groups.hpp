// Which gradients travel together, and the ops that carry them: buckets of data parallelism, shards of ZeRO.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/units.hpp"
#include "step/op.hpp"
#include "step/tensor.hpp"

namespace lockstep::step {

struct Assembly;
struct Chunk;

/// Fills buckets as PyTorch's DistributedDataParallel does: gradients in the given order; a bucket closes when it holds
/// at least its limit, the first one's being `first`. Returns indices into `sizes`, bucket by bucket.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<Bytes>& sizes, Bytes first, Bytes limit);

/// What must happen to a gradient before data parallelism averages it.
enum class GradientSum {
    none,
    over_tp,      ///< each tp rank has seen a part of the sequence
    over_stages,  ///< first and last stage share the parameter
    of_experts    ///< none, but data parallelism is over the ranks with the same experts: all-to-alls did the rest
};

struct GradientGroup {
    std::string name;
    std::vector<model::ParameterId> parameters;  ///< in the order of their place in the group
    std::vector<std::int64_t> first_element;
    std::int64_t elements = 0;  ///< with the padding up to a multiple of the ranks that share it
    GradientSum sum = GradientSum::none;
    bool is_trained = true;       ///< false: frozen parameters that are gathered (ZeRO 3)
    TensorId storage;             ///< what travels
    TensorId gradients;           ///< the gradients' own flat storage, when they are views
    TensorId padding;             ///< elements of `gradients` nobody writes; invalid: none
    std::vector<TensorId> parts;  ///< of the storage, by parameter, when gradients are copied in and out
    TensorId scattered;           ///< this rank's part of the sum, of one pass (ZeRO)
    TensorId shard;               ///< this rank's part of the gradient the optimizer reads (ZeRO)
    TensorId flat_parameters;     ///< all parameters behind one another (ZeRO)
    TensorId parameter_shard;     ///< this rank's part of them, which the optimizer updates (ZeRO)
    std::size_t missing = 0;      ///< gradients of a pass still to come
    bool is_launched = false;
    int unit = -1;  ///< ZeRO 3: the block of the model whose parameters these are
};

struct GradientGroups {
    std::vector<GradientGroup> groups;  ///< in launch order
    std::map<model::ParameterId, std::int32_t> group_of;
    std::vector<std::size_t> scattering;  ///< groups on their way in this pass, oldest first
    GradientGroup* of(model::ParameterId id) {
        const auto found = group_of.find(id);
        return found == group_of.end() ? nullptr : &groups[static_cast<std::size_t>(found->second)];
    }
};

/// True when gradients live in a flat tensor of their group; else they are copied into it and back.
bool has_gradient_views(const Assembly& a);
/// True when what travels is not where the gradients live.
bool has_gradient_copies(const Assembly& a);
/// ZeRO 3: parameters are gathered once a step and kept: as asked for, or because a pipeline has passes in flight that
/// would gather them again.
bool keeps_parameters(const Assembly& a);
/// ZeRO 2 and 3: gradients are scattered in each pass of an accumulation; but those that two stages share only at the
/// end of the step, as the stages are in different passes before.
bool scatters_each_pass(const Assembly& a, GradientSum sum);

/// Lays out the groups of a chunk: trained parameters in reverse order of first use, those that need a sum first in
/// groups of their own behind the others; with ZeRO 3 one group for each block of the model.
void layout_groups(Assembly& a, Chunk& chunk);
/// Makes the flat tensors of ZeRO's parameters; before the parameters, which are views of them.
void make_parameter_storage(Assembly& a, Chunk& chunk);
/// Makes the tensors in which gradients travel; after the parameters.
void make_gradient_storage(Assembly& a, Chunk& chunk);
/// A view of a parameter's place in a group's flat parameters or gradients; invalid when it has none.
TensorId parameter_view(Assembly& a, Chunk& chunk, model::ParameterId id, std::string name);
TensorId gradient_view(Assembly& a, Chunk& chunk, model::ParameterId id, std::string name);

/// The parameter's gradient of this pass is complete: copies it in and, when plan.overlap, launches every group whose
/// turn has come.
void gradient_is_ready(Assembly& a, Chunk& chunk, model::ParameterId id);
/// At the end of the backward block: launches what must not wait for the other passes.
void finish_pass(Assembly& a, Chunk& chunk);
/// In the gradient_sync block: what is left after the last backward pass: the collectives without overlap, and the
/// copies out of the buckets.
void finish_groups(Assembly& a, Chunk& chunk);

/// ZeRO 3, in the open block: gathers the parameters of the model's block `unit` (-1: what is in none), not before
/// `after` is there (invalid: at any time).
void gather_unit(Assembly& a, Chunk& chunk, int unit, const char* why, TensorId after = {});
/// ZeRO 1 and 2, after the optimizer: gathers the updated parameters of all groups.
void gather_updated(Assembly& a, Chunk& chunk);

}  // namespace lockstep::step
