#include "gpu/dnn_plan.hpp"

#include <fmt/format.h>

#include <vector>

#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

/// cuDNN's proposals for a graph, the one it thinks fastest first.
std::vector<DnnDescriptor> ask_heuristics(const DnnDescriptor& operations, std::string& why_not) {
    DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!heuristics.try_finalize(why_not)) return {};
    std::vector<DnnDescriptor> proposals;
    std::vector<cudnnBackendDescriptor_t> room;
    const std::int64_t most = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    for (std::int64_t i = 0; i < most; ++i)
        room.push_back(proposals.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    const std::int64_t count =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, room.data());
    while (static_cast<std::int64_t>(proposals.size()) > count) proposals.pop_back();
    if (proposals.empty()) why_not = "its heuristics propose no engine";
    return proposals;
}

std::string text_of(const DnnDescriptor& proposal) {
    const DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t room = engine.get();
    proposal.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &room);
    std::int64_t index = -1;
    engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    return fmt::format("cuDNN engine {}", index);
}

}  // namespace

DnnChoice choose_plan(DnnGraph graph, cudnnHandle_t handle) {
    DnnChoice choice;
    DnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const std::vector<cudnnBackendDescriptor_t> all = graph.operations();
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
                   all.data());
    if (!operations.try_finalize(choice.why_not)) return choice;
    for (DnnDescriptor& proposal : ask_heuristics(operations, choice.why_not)) {
        DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
        if (!plan.try_finalize(choice.why_not)) continue;
        std::int64_t workspace = 0;
        plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
        std::string text = text_of(proposal);
        choice.plan = std::make_shared<const DnnPlan>(DnnPlan{
            std::move(graph), std::move(operations), std::move(proposal), std::move(plan), workspace, std::move(text)});
        return choice;
    }
    return choice;
}

const DnnChoice& DnnPlans::get(const std::string& what, const std::function<DnnChoice()>& choose) {
    auto found = choices_.find(what);
    if (found == choices_.end()) found = choices_.emplace(what, choose()).first;
    return found->second;
}

DnnCall::DnnCall(std::shared_ptr<const DnnPlan> plan)
    : plan_(std::move(plan)), addresses_(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {}

void DnnCall::bind(std::span<const Address> addresses, std::byte* workspace) {
    std::vector<std::int64_t> ids;
    std::vector<const void*> pointers;
    for (const auto& [id, address] : addresses) {
        ids.push_back(id);
        pointers.push_back(address);
    }
    for (const auto& [id, value] : plan_->graph.numbers()) {
        ids.push_back(id);
        pointers.push_back(&value);
    }
    const auto count = static_cast<std::int64_t>(ids.size());
    addresses_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
    addresses_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
    addresses_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    addresses_.finalize();
}

void DnnCall::execute(cudnnHandle_t handle) const {
    check_dnn(cudnnBackendExecute(handle, plan_->plan.get(), addresses_.get()), "cudnnBackendExecute");
}

}  // namespace lockstep::gpu
