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

/// Which plans cuDNN makes for a graph.
struct Plans {
    int with_tensor_cores = 0, without = 0;
    std::int64_t least_workspace = std::numeric_limits<std::int64_t>::max(), least_plain_workspace = least_workspace;
};

void add_plan(const DnnDescriptor& proposal, const DnnDescriptor& device, Plans& plans) {
    const DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t room = engine.get();
    proposal.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &room);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT]{};
    const std::int64_t count =
        engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    const bool has_tensor_cores = std::count(notes, notes + count, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) > 0;
    if (std::count(notes, notes + count, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) > 0) return;
    DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    if (std::string why_not; !plan.try_finalize(why_not)) return;
    std::int64_t workspace = 0;
    plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
    ++(has_tensor_cores ? plans.with_tensor_cores : plans.without);
    plans.least_workspace = std::min(plans.least_workspace, workspace);
    if (!has_tensor_cores) plans.least_plain_workspace = std::min(plans.least_plain_workspace, workspace);
}

Plans plans_of(const DnnGraph& graph, const DnnDescriptor& device) {
    Plans plans;
    std::string why_not;
    DnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const std::vector<cudnnBackendDescriptor_t> all = graph.operations();
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
                   all.data());
    if (!operations.try_finalize(why_not)) return plans;
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
        for (std::int64_t i = 0; i < count; ++i) add_plan(proposals[static_cast<std::size_t>(i)], device, plans);
    }
    return plans;
}

class ConvolutionPlans : public ::testing::TestWithParam<Device> {};

TEST_P(ConvolutionPlans, of_all_passes_and_types_are_found_within_256_MiB) {
    constexpr std::int64_t limit = std::int64_t{256} << 20;
    std::string why_not;
    const std::optional<DnnDescriptor> device = describe(GetParam(), why_not);
    if (!device) GTEST_SKIP() << "this cuDNN describes devices otherwise: " << why_not;
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16})
        for (Convolution c : layers)
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
                for (const bool adds : {false, true}) {
                    c.pass = pass;
                    const Plans plans = plans_of(make_convolution_graph(c, dtype, {}, adds), *device);
                    const std::string what =
                        fmt::format("{} {} of {} channels to {}, kernel {}, adds {}", to_string(dtype), name_of(pass),
                                    c.in_channels, c.out_channels, c.kernel, adds);
                    EXPECT_GT(plans.with_tensor_cores, 0) << what;
                    EXPECT_LE(plans.least_workspace, limit) << what;
                    if (dtype != DType::fp32) continue;
                    EXPECT_GT(plans.without, 0) << what;
                    EXPECT_LE(plans.least_plain_workspace, limit) << what;
                }
}

TEST_P(ConvolutionPlans, of_addresses_that_only_an_element_divides_are_found) {
    std::string why_not;
    const std::optional<DnnDescriptor> device = describe(GetParam(), why_not);
    if (!device) GTEST_SKIP() << "this cuDNN describes devices otherwise: " << why_not;
    Convolution c = layers[1];
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        c.pass = pass;
        const Plans plans = plans_of(make_convolution_graph(c, DType::bf16, {16, 2, 16}, false), *device);
        EXPECT_GT(plans.with_tensor_cores + plans.without, 0) << name_of(pass);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ConvolutionPlans, ::testing::Values(a100, h100, b200),
                         [](const auto& one) { return fmt::format("sm_{}", one.param.capability / 10); });

}  // namespace
}  // namespace lockstep::gpu::testing
