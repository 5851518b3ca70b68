// Graphs of cuDNN's backend interface, as its double carries them out, and what it finds wrong.
#include <gmock/gmock.h>

#include "base/error.hpp"
#include "gpu/dnn_plan.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using Extents = DnnGraph::Extents;
using ::testing::ElementsAre;

void run_graph(DnnGraph graph, const std::vector<DnnCall::Address>& addresses) {
    Dnn dnn;
    DnnChoice choice = choose_plan(std::move(graph), dnn.handle());
    ASSERT_NE(choice.plan, nullptr) << choice.why_not;
    DnnCall call(choice.plan);
    const DeviceMemory workspace = allocate_device(choice.plan->workspace_bytes, "a workspace");
    call.bind(addresses, workspace.get());
    const Stream stream = make_stream();
    call.execute(dnn.on(stream.get()));
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
}

TEST(DnnGraph, multiplies_matrices_that_heads_share_by_their_strides) {
    // a: two heads of [1, 2], b: one [2, 2] whose rows are 3 apart. (1 2) b = (1 + 2 * 3, 10 + 2 * 30) ...
    const DeviceTensor a(slot({4}, {1, 2, 3, 4})), b(slot({5}, {1, 10, -1, 3, 30})), c(result({4}));
    DnnGraph g;
    const auto ta = g.memory(DType::fp32, {1, 2, 1, 2}, {4, 2, 2, 1});
    const auto tb = g.memory(DType::fp32, {1, 1, 2, 2}, {5, 5, 3, 1});
    const auto tc = g.memory(DType::fp32, {1, 2, 1, 2}, {4, 2, 2, 1});
    g.matmul(ta, tb, tc);
    run_graph(std::move(g), {{ta.id, a.operand().data}, {tb.id, b.operand().data}, {tc.id, c.operand().data}});
    EXPECT_THAT(c.read(), ElementsAre(7, 70, 15, 150));
}

TEST(DnnGraph, reads_a_tensor_in_another_order_reduces_it_and_takes_numbers) {
    // x^T of [2, 3], its rows' largest, and 10 times their sums.
    const DeviceTensor x(slot({6}, {1, 2, 3, 6, 5, 4})), largest(result({3})), sum(result({3}));
    DnnGraph g;
    const auto tx = g.memory(DType::fp32, {1, 1, 2, 3}, {6, 6, 3, 1});
    const auto turned = g.inside({1, 1, 3, 2}, {6, 6, 1, 3}, CUDNN_DATA_FLOAT);
    g.reshape(tx, turned);
    const auto tl = g.memory(DType::fp32, {1, 1, 3, 1}, {3, 3, 1, 1});
    const auto ts = g.memory(DType::fp32, {1, 1, 3, 1}, {3, 3, 1, 1});
    g.reduce(CUDNN_REDUCE_TENSOR_MAX, turned, tl);
    g.reduce(CUDNN_REDUCE_TENSOR_ADD, g.apply(CUDNN_POINTWISE_MUL, turned, g.number(10)), ts);
    run_graph(std::move(g), {{tx.id, x.operand().data}, {tl.id, largest.operand().data}, {ts.id, sum.operand().data}});
    EXPECT_THAT(largest.read(), ElementsAre(6, 5, 4));
    EXPECT_THAT(sum.read(), ElementsAre(70, 70, 70));
}

TEST(DnnGraph, keeps_the_lower_triangle) {
    const DeviceTensor x(slot({4}, {1, 2, 3, 4})), y(result({4}));
    DnnGraph g;
    const auto tx = g.memory(DType::fp32, {1, 1, 2, 2}, {4, 4, 2, 1});
    const auto ty = g.memory(DType::fp32, {1, 1, 2, 2}, {4, 4, 2, 1});
    g.pointwise(CUDNN_POINTWISE_IDENTITY, g.lower_triangle(tx, g.number(-7)), ty);
    run_graph(std::move(g), {{tx.id, x.operand().data}, {ty.id, y.operand().data}});
    EXPECT_THAT(y.read(), ElementsAre(1, -7, 3, 4));
}

// Each misuse in a process of its own: the double ends it with status 97, though the program itself says 0.
class DnnGraphMisuse : public ::testing::Test {
protected:
    DnnGraphMisuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    static void expect(const std::function<void()>& misuse, const char* message) {
        EXPECT_EXIT(
            {
                try {
                    misuse();
                } catch (const Error&) {  // the call said so, too
                }
                std::exit(0);
            },
            ::testing::ExitedWithCode(97), message);
    }
    static constexpr Extents extents{1, 1, 2, 2}, strides{4, 4, 2, 1};
};

TEST_F(DnnGraphMisuse, of_a_descriptor_without_what_it_needs_is_found) {
    expect([] { DnnDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR).finalize(); }, "has no UNIQUE_ID");
}
TEST_F(DnnGraphMisuse, of_extents_that_do_not_fit_is_found) {
    expect(
        [] {
            DnnGraph g;
            const auto a = g.memory(DType::fp32, extents, strides), b = g.memory(DType::fp32, {1, 1, 3, 2}, strides);
            g.matmul(a, b, g.memory(DType::fp32, extents, strides));
        },
        "tensor 1 .1, 1, 2, 2. times tensor 2 .1, 1, 3, 2. is not tensor 3");
}
TEST_F(DnnGraphMisuse, of_a_virtual_tensor_that_nobody_makes_is_found) {
    expect(
        [] {
            DnnGraph g;
            const auto nobodys = g.inside(extents);
            g.pointwise(CUDNN_POINTWISE_EXP, nobodys, g.memory(DType::fp32, extents, strides));
            run_graph(std::move(g), {});
        },
        "virtual tensor 1 is no operation's result");
}
TEST_F(DnnGraphMisuse, of_addresses_that_lack_or_are_no_devices_is_found) {
    const auto run = [](bool has_address) {
        DnnGraph g;
        const auto x = g.memory(DType::fp32, extents, strides), y = g.memory(DType::fp32, extents, strides);
        g.pointwise(CUDNN_POINTWISE_EXP, x, y);
        const DeviceTensor memory(slot({4}));
        alignas(16) static float on_host[4] = {};
        std::vector<DnnCall::Address> addresses{{x.id, memory.operand().data}};
        if (has_address) addresses.emplace_back(y.id, on_host);
        run_graph(std::move(g), addresses);
    };
    expect([&] { run(false); }, "tensor 2 has no address");
    expect([&] { run(true); }, "tensor 2");
}

}  // namespace
}  // namespace lockstep::gpu::testing
