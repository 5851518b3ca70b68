#include "gpu/dnn_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

/// Appends cuDNN's proposals for a graph, the one it thinks fastest first.
void ask_heuristics(const DnnDescriptor& operations, cudnnBackendHeurMode_t mode, std::vector<DnnDescriptor>& proposals,
                    std::string& why_not) {
    DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!heuristics.try_finalize(why_not)) return;
    std::vector<DnnDescriptor> made;
    std::vector<cudnnBackendDescriptor_t> room;
    const std::int64_t most = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    if (most == 0) return;
    for (std::int64_t i = 0; i < most; ++i) room.push_back(made.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    const std::int64_t count =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, room.data());
    made.erase(made.begin() + count, made.end());
    std::move(made.begin(), made.end(), std::back_inserter(proposals));
}

DnnDescriptor engine_of(const DnnDescriptor& proposal) {
    DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t room = engine.get();
    proposal.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &room);
    return engine;
}

std::string text_of(const DnnDescriptor& proposal) {
    std::int64_t index = -1;
    engine_of(proposal).get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    return fmt::format("cuDNN engine {}", index);
}

bool rounds_as_wished(const DnnDescriptor& proposal, DnnRounding wished) {
    if (wished == DnnRounding::any) return true;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT]{};
    const std::int64_t count = engine_of(proposal).get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                       CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    return std::none_of(notes, notes + count, [&](cudnnBackendNumericalNote_t note) {
        return note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
               (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && wished == DnnRounding::none);
    });
}

}  // namespace

DnnChoice choose_plan(DnnGraph graph, cudnnHandle_t handle, const DnnWishes& wishes) {
    DnnChoice choice;
    DnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const std::vector<cudnnBackendDescriptor_t> all = graph.operations();
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
                   all.data());
    if (!operations.try_finalize(choice.why_not)) return choice;
    std::vector<DnnDescriptor> proposals;
    ask_heuristics(operations, CUDNN_HEUR_MODE_A, proposals, choice.why_not);
    if (wishes.takes_fallback) ask_heuristics(operations, CUDNN_HEUR_MODE_FALLBACK, proposals, choice.why_not);
    if (proposals.empty() && choice.why_not.empty()) choice.why_not = "its heuristics propose no engine";
    struct Found {
        DnnDescriptor engine, plan;
        std::int64_t workspace;
        std::string text;
    };
    std::optional<Found> best;
    for (DnnDescriptor& proposal : proposals) {
        if (!rounds_as_wished(proposal, wishes.rounding)) continue;
        DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
        if (!plan.try_finalize(choice.why_not)) continue;
        std::int64_t workspace = 0;
        plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
        if (best && best->workspace <= workspace) continue;
        std::string text = text_of(proposal);
        best.emplace(Found{std::move(proposal), std::move(plan), workspace, std::move(text)});
        if (workspace <= wishes.most_workspace) break;
    }
    if (!best) {
        if (choice.why_not.empty()) choice.why_not = "all its engines round factors";
        return choice;
    }
    choice.plan =
        std::make_shared<const DnnPlan>(DnnPlan{std::move(graph), std::move(operations), std::move(best->engine),
                                                std::move(best->plan), best->workspace, std::move(best->text)});
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
