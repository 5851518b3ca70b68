// The real cuDNN's engines take attention's graphs as lockstep builds them: on its layout, with heads that share keys.
// A plan is made as far as compiling its kernels, for a GPU described in the words of cuDNN's device properties.
#include <gtest/gtest.h>

#include "gpu/attention_graph.hpp"
#include "gpu_plans/device.hpp"

namespace lockstep::gpu::testing {
namespace {

/// Empty when a plan is made, else why not.
std::string plan(const DnnGraph& graph, const DnnDescriptor& device) {
    std::string why_not;
    DnnDescriptor operations(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const std::vector<cudnnBackendDescriptor_t> all = graph.operations();
    operations.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
                   all.data());
    if (!operations.try_finalize(why_not)) return why_not;
    DnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!heuristics.try_finalize(why_not)) return why_not;
    DnnDescriptor proposal(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t room = proposal.get();
    if (heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &room) == 0)
        return "no proposal";
    DnnDescriptor made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    made.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    made.try_finalize(why_not);
    return why_not;
}

class AttentionPlans : public ::testing::Test {
protected:
    /// Both passes; skips where this cuDNN wants another description.
    static void expect_plans(const Device& described, const step::Attention& op, DType dtype) {
        std::string why_not;
        const std::optional<DnnDescriptor> found = describe(described, why_not);
        if (!found) GTEST_SKIP() << "this cuDNN describes devices otherwise: " << why_not;
        const DnnDescriptor& device = *found;
        EXPECT_EQ(plan(make_forward_graph(op, dtype).graph, device), "") << "forward on " << described.name;
        EXPECT_EQ(plan(make_backward_graph(op, dtype).graph, device), "") << "backward on " << described.name;
    }
    static step::Attention attention(std::int64_t seq, std::int64_t kv_heads, std::int64_t head_dim, bool causal) {
        step::Attention a;
        a.batch = 2;
        a.heads = 8;
        a.seq = seq;
        a.kv_heads = kv_heads;
        a.head_dim = head_dim;
        a.causal = causal;
        return a;
    }
};

TEST_F(AttentionPlans, of_gpt_are_found) {
    for (const Device& device : {a100, h100, b200}) expect_plans(device, attention(1024, 8, 64, true), DType::bf16);
}
TEST_F(AttentionPlans, of_heads_that_share_keys_and_an_odd_sequence_are_found) {
    expect_plans(h100, attention(1000, 2, 128, false), DType::fp16);
}
TEST_F(AttentionPlans, of_wide_heads_are_found_on_hopper) {
    expect_plans(h100, attention(512, 8, 256, true), DType::bf16);
}

}  // namespace
}  // namespace lockstep::gpu::testing
