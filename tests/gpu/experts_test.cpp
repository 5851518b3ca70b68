// Routing, dispatch and combination of experts' rows beside the CPU's.
#include "base/error.hpp"
#include "gpu/parity.hpp"
#include "step/routing.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Pass;

/// As many rows as the routing can want of these positions, at most `most`.
step::Route route_of(const step::Place& tokens, std::int64_t experts, double imbalance, std::int64_t most = 0) {
    step::Route op{.seq = tokens.shape[0], .batch = tokens.shape[1], .experts = experts, .top_k = tokens.shape[2]};
    op.imbalance = imbalance;
    op.stream = 77;
    op.rows_per_expert = step::most_rows({experts, op.top_k, imbalance}, tokens.runs[0]) * op.batch;
    op.may_drop = most > 0;
    if (most > 0) op.rows_per_expert = std::min(op.rows_per_expert, most);
    return op;
}
Case routing(const step::Route& op, const Slot& token_rows) {
    return {step::Compute{op},
            {},
            {token_rows, result({op.experts, op.rows_per_expert}, DType::int32)},
            {{0, 0}, {0, 3}, {2, 1}}};
}

TEST(GpuRoute, tokens_take_the_rows_they_take_on_the_cpu) {
    for (const std::int64_t experts : {1, 4, 7})
        for (const double imbalance : {0.0, 0.4})
            for (const std::int64_t most : {0, 3}) {
                const Slot tokens = result({19, 3, std::min<std::int64_t>(experts, 2)}, DType::int32);
                expect_parity(routing(route_of(tokens, experts, imbalance, most), tokens));
            }
}

TEST(GpuRoute, many_tokens_are_placed_in_chunks) {
    const Slot tokens = result({500, 2, 2}, DType::int32);  // 2000 choices, in chunks of 256
    expect_parity(routing(route_of(tokens, 8, 0.5), tokens));
    expect_parity(routing(route_of(tokens, 8, 0.5, 260), tokens));
}

TEST(GpuRoute, parts_in_zigzag_of_a_split_batch_take_the_experts_the_whole_takes) {
    plan::Mesh mesh;
    mesh.cp = 2;
    mesh.dp = 2;
    for (int rank = 0; rank < 4; ++rank) {
        const Slot tokens = part({12, 3, 2}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}, {1, plan::Axis::dp}},
                                 mesh, rank, {}, DType::int32);
        expect_parity(routing(route_of(tokens, 4, 0.3), tokens));
    }
}

TEST(GpuRoute, too_few_rows_for_what_may_come_are_refused_unless_tokens_may_be_dropped) {
    const Slot tokens = result({8, 1, 2}, DType::int32);
    step::Route op = route_of(tokens, 4, 0);
    --op.rows_per_expert;
    EXPECT_THROW(run_on_gpu(routing(op, tokens)), LogicError);
    op.may_drop = true;
    expect_parity(routing(op, tokens));
}

struct Tables {
    step::Route route;
    Slot token_rows, row_tokens;
    std::int64_t rows() const { return route.experts * route.rows_per_expert; }
};
Tables tables_of(std::int64_t seq, std::int64_t top_k, std::int64_t experts, std::int64_t most) {
    Slot tokens = result({seq, 2, top_k}, DType::int32);
    const step::Route op = route_of(tokens, experts, 0.3, most);
    const Results results = run_on_cpu(routing(op, tokens));
    tokens.values = results[0][0];
    return {op, tokens, slot({experts, op.rows_per_expert}, results[0][1], DType::int32)};
}

TEST(GpuDispatch, both_passes_equal_the_cpus_with_dropped_tokens_and_empty_rows) {
    for (const DType type : float_types)
        for (const std::int64_t width : {5, 16, 300})
            for (const std::int64_t most : {0, 4}) {
                const Tables t = tables_of(9, 2, 4, most);
                step::Dispatch op{.tokens = 18, .top_k = 2, .rows = t.rows(), .width = width, .factor = 0.5};
                expect_parity({step::Compute{op},
                               {slot({18, width}, normal_values(18 * width, 1), type), t.row_tokens},
                               {slot({t.rows(), width}, normal_values(t.rows() * width, 2), type)}});
                op.pass = Pass::backward_data;
                expect_parity({step::Compute{op},
                               {slot({t.rows(), width}, normal_values(t.rows() * width, 3), type), t.token_rows},
                               {slot({18, width}, normal_values(18 * width, 4), type)}});
            }
}

TEST(GpuCombine, both_passes_equal_the_cpus_with_dropped_tokens_and_empty_rows) {
    for (const DType type : float_types)
        for (const std::int64_t width : {5, 16, 300})
            for (const std::int64_t most : {0, 4}) {
                const Tables t = tables_of(9, 3, 4, most);
                step::Combine op{.tokens = 18, .experts = 4, .top_k = 3, .rows_per_expert = t.route.rows_per_expert};
                op.width = width;
                op.factor = 0.25;
                const Slot x = slot({t.rows(), width}, normal_values(t.rows() * width, 1), type);
                const Slot logits = slot({18, 4}, normal_values(72, 2), type);
                expect_parity({step::Compute{op}, {x, logits, t.token_rows}, {result({18, width}, type)}});
                op.pass = Pass::backward_data;
                expect_parity(
                    {step::Compute{op},
                     {slot({18, width}, normal_values(18 * width, 3), type), x, logits, t.token_rows, t.row_tokens},
                     {result({t.rows(), width}, type), result({18, 4}, type)},
                     {{0, 0}},
                     MathType::fp32,
                     4});
            }
}

TEST(GpuExperts, results_that_should_be_added_are_refused) {
    Slot y = result({2, 4});
    y.access = step::Access::accumulate;
    EXPECT_THROW(
        run_on_gpu({step::Compute{step::Dispatch{2, 1, 2, 4}}, {slot({2, 4}), slot({2}, {}, DType::int32)}, {y}}),
        LogicError);
}

}  // namespace
}  // namespace lockstep::gpu::testing
