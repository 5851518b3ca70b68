// The real cuDNN's engines take convolutions as lockstep builds them: those of ResNet-50, in all types, also such that
// add to what is there, and in fp32 without tensor cores.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/convolution_graph.hpp"
#include "gpu_plans/device.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Convolution;
using step::Pass;

/// n, in channels, height, width, out channels, kernel, stride, padding, groups
const Convolution layers[] = {
    {64, 3, 224, 224, 64, 7, 2, 3, 1},  {64, 64, 56, 56, 64, 3, 1, 1, 1},    {64, 64, 56, 56, 256, 1, 1, 0, 1},
    {64, 256, 56, 56, 512, 1, 2, 0, 1}, {64, 128, 56, 56, 128, 3, 2, 1, 1},  {64, 1024, 14, 14, 256, 1, 1, 0, 1},
    {64, 512, 7, 7, 512, 3, 1, 1, 1},   {32, 128, 56, 56, 128, 3, 1, 1, 32},  // the last as ResNeXt has it
};

constexpr std::int64_t most_workspace = std::int64_t{256} << 20;

enum class Cores { any, no_tensor_cores };

bool is_allowed(const DnnDescriptor& proposal, Cores cores) {
    const DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t room = engine.get();
    proposal.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &room);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT]{};
    const std::int64_t count =
        engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    return std::none_of(notes, notes + count, [&](cudnnBackendNumericalNote_t note) {
        return note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
               (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && cores == Cores::no_tensor_cores);
    });
}

/// Whether a proposal's engine is made for the device and is content with the workspace.
bool makes_plan(const DnnDescriptor& proposal, const DnnDescriptor& device) {
    DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    if (std::string why_not; !plan.try_finalize(why_not)) return false;
    std::int64_t workspace = 0;
    plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
    return workspace <= most_workspace;
}

/// Whether a proposal for the graph leads to a plan.
bool has_plan(const DnnGraph& graph, const DnnDescriptor& device, Cores cores) {
    std::string why_not;
    DnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const std::vector<cudnnBackendDescriptor_t> all = graph.operations();
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
                   all.data());
    if (!operations.try_finalize(why_not)) return false;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
        if (!heuristics.try_finalize(why_not)) continue;
        std::vector<DnnDescriptor> proposals;
        std::vector<cudnnBackendDescriptor_t> room;
        const std::int64_t most = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
        for (std::int64_t i = 0; i < most; ++i)
            room.push_back(proposals.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
        const std::int64_t count =
            heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, room.data());
        for (std::int64_t i = 0; i < count; ++i) {
            const DnnDescriptor& proposal = proposals[static_cast<std::size_t>(i)];
            if (is_allowed(proposal, cores) && makes_plan(proposal, device)) return true;
        }
    }
    return false;
}

class ConvolutionPlans : public ::testing::TestWithParam<Device> {};

TEST_P(ConvolutionPlans, of_all_passes_and_types_are_found_within_256_MiB) {
    std::string why_not;
    const std::optional<DnnDescriptor> device = describe(GetParam(), why_not);
    if (!device) GTEST_SKIP() << "this cuDNN describes devices otherwise: " << why_not;
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16})
        for (Convolution c : layers)
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
                for (const bool adds : {false, true}) {
                    c.pass = pass;
                    const DnnGraph graph = make_convolution_graph(c, dtype, {}, adds);
                    const std::string what =
                        fmt::format("{} {} of {} channels to {}, kernel {}, adds {}", to_string(dtype), name_of(pass),
                                    c.in_channels, c.out_channels, c.kernel, adds);
                    EXPECT_TRUE(has_plan(graph, *device, Cores::any)) << what;
                    if (dtype != DType::fp32) continue;
                    EXPECT_TRUE(has_plan(graph, *device, Cores::no_tensor_cores)) << what << ", no tensor cores";
                }
}

TEST_P(ConvolutionPlans, of_addresses_that_only_an_element_divides_are_found) {
    std::string why_not;
    const std::optional<DnnDescriptor> device = describe(GetParam(), why_not);
    if (!device) GTEST_SKIP() << "this cuDNN describes devices otherwise: " << why_not;
    Convolution c = layers[1];
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        c.pass = pass;
        EXPECT_TRUE(has_plan(make_convolution_graph(c, DType::bf16, {16, 2, 16}, false), *device, Cores::any))
            << name_of(pass);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvolutionPlans, ::testing::Values(a100, h100, b200),
                         [](const auto& one) { return fmt::format("sm_{}", one.param.capability / 10); });

}  // namespace
}  // namespace lockstep::gpu::testing
