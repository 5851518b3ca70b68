// How cuDNN carries out a graph of operations on a device, and calls of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gpu/dnn_graph.hpp"

namespace lockstep::gpu {

struct DnnPlan {
    DnnGraph graph;
    DnnDescriptor operations, engine, plan;
    std::int64_t workspace_bytes = 0;
    std::string text;  ///< "cuDNN engine 6"
};

/// A plan, or why there is none.
struct DnnChoice {
    std::shared_ptr<const DnnPlan> plan;
    std::string why_not;
};

/// What an engine may do to the factors of its products: round them as it likes, only as tensor cores do (fp32 to
/// tf32), or not at all, which forbids tensor cores.
enum class DnnRounding { any, of_tensor_cores, none };

/// What a plan must be like.
struct DnnWishes {
    DnnRounding rounding = DnnRounding::any;
    std::int64_t most_workspace = std::numeric_limits<std::int64_t>::max();  ///< bytes; more only where nothing fits
    bool takes_fallback = false;  ///< also an engine that is only sure to work
};

/// By the first of cuDNN's proposals (heuristic mode A) that is as wished and that the handle's device can carry out.
DnnChoice choose_plan(DnnGraph graph, cudnnHandle_t handle, const DnnWishes& wishes = {});

/// Choices made so far, by what the graph computes: equal layers share one, as cuDNN compiles each for a second.
class DnnPlans {
public:
    const DnnChoice& get(const std::string& what, const std::function<DnnChoice()>& choose);

private:
    std::map<std::string, DnnChoice> choices_;
};

/// A plan bound to addresses.
class DnnCall {
public:
    /// An id of the graph's tensors, and where it is on the device.
    using Address = std::pair<std::int64_t, void*>;
    explicit DnnCall(std::shared_ptr<const DnnPlan> plan);
    const DnnPlan& plan() const { return *plan_; }
    /// Takes the addresses of all tensors in memory, and plan().workspace_bytes. Once.
    void bind(std::span<const Address> addresses, std::byte* workspace);
    /// On the handle's stream.
    void execute(cudnnHandle_t handle) const;

private:
    std::shared_ptr<const DnnPlan> plan_;
    DnnDescriptor addresses_;
};

}  // namespace lockstep::gpu
