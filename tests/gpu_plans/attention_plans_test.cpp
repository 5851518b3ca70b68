// The real cuDNN's engines take attention's graphs as lockstep builds them: on its layout, with heads that share keys.
// A plan is made as far as compiling its kernels, for a GPU described in the words of cuDNN's device properties.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "gpu/attention_graph.hpp"

namespace lockstep::gpu::testing {
namespace {

struct Device {
    const char* name;
    int capability;  ///< 100 x major + 10 x minor
    int multiprocessors, shared_memory;
};
constexpr Device a100{"NVIDIA A100-SXM4-80GB", 800, 108, 166912};
constexpr Device h100{"NVIDIA H100 80GB HBM3", 900, 132, 232448};
constexpr Device b200{"NVIDIA B200", 1000, 148, 232448};

std::string json_of(const Device& d) {
    return fmt::format(
        R"({{"cudaDeviceId":0,"deviceVer":{},"driverVer":13000,"maxGridSize":[2147483647,65535,65535],)"
        R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":{},"smClockRateKHz":1410000,)"
        R"("memClockRateKHz":1593000,"l2CacheSize":41943040,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
        R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
        R"("pciDeviceId":0,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,)"
        R"("supportCoopLaunch":1,"deviceName":"{}","totalGlobalMem":85000000000}})",
        d.capability, d.multiprocessors, d.shared_memory, d.name);
}

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
        DnnDescriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
        const std::string json = json_of(described);
        device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()),
                   json.data());
        if (std::string why_not; !device.try_finalize(why_not))
            GTEST_SKIP() << "this cuDNN describes devices otherwise: " << why_not;
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
