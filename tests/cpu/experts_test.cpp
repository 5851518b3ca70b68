// Routing, dispatch and combination of experts' rows against plain loops; the gradient of a whole expert layer.
#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "cpu/kernel_harness.hpp"
#include "step/routing.hpp"

namespace lockstep::cpu::testing {
namespace {

using step::Pass;

/// Sizes of one rank's routing: as many rows as the routing can want, at most `capacity` times the mean.
step::Route route_of(std::int64_t seq, std::int64_t batch, std::int64_t experts, std::int64_t top_k,
                     double imbalance = 0, double capacity = 0) {
    step::Route route{.seq = seq, .batch = batch, .experts = experts, .top_k = top_k, .imbalance = imbalance};
    const std::vector<step::IndexRun> all{{0, 0, seq}};
    route.rows_per_expert = step::most_rows({experts, top_k, imbalance}, all) * batch;
    route.stream = 77;
    if (capacity <= 0) return route;
    route.may_drop = true;
    const auto most = static_cast<std::int64_t>(capacity * static_cast<double>(seq * batch * top_k / experts));
    route.rows_per_expert = std::min(route.rows_per_expert, most);
    return route;
}

class Experts : public KernelTest {
protected:
    struct Tables {
        Tensor &token_rows, &row_tokens;
    };
    Tables routed(const step::Route& route, const Moment& moment = {}) {
        Tensor& token_rows = tensor({route.seq, route.batch, route.top_k}, {}, Order::row_major, DType::int32);
        return routed(route, token_rows, moment);
    }
    Tables routed(const step::Route& route, Tensor& token_rows, const Moment& moment = {}) {
        Tensor& row_tokens = tensor({route.experts, route.rows_per_expert}, {}, Order::row_major, DType::int32);
        run(route, {}, {out(token_rows), out(row_tokens)}, moment);
        return {token_rows, row_tokens};
    }
    static std::vector<std::int64_t> rows_of_experts(const step::Route& route, const Tables& tables) {
        std::vector<std::int64_t> count(static_cast<std::size_t>(route.experts));
        for (const float row : tables.token_rows.read())
            if (row >= 0) ++count[static_cast<std::size_t>(row) / static_cast<std::size_t>(route.rows_per_expert)];
        return count;
    }
};

TEST_F(Experts, balanced_routing_gives_each_expert_the_same_number_of_tokens) {
    const step::Route route = route_of(16, 3, 8, 2);
    EXPECT_EQ(route.rows_per_expert, 16 * 3 * 2 / 8);
    const Tables tables = routed(route);
    for (const std::int64_t count : rows_of_experts(route, tables)) EXPECT_EQ(count, route.rows_per_expert);
    for (const float token : tables.row_tokens.read()) EXPECT_GE(token, 0);
}

TEST_F(Experts, the_tables_are_each_others_inverse_and_a_tokens_experts_differ) {
    for (const double imbalance : {0.0, 1.0}) {
        const step::Route route = route_of(10, 2, 4, 3, imbalance > 0 ? 0.2 : 0);
        const Tables tables = routed(route);
        const Values token_rows = tables.token_rows.read(), row_tokens = tables.row_tokens.read();
        for (std::int64_t token = 0; token < 20; ++token) {
            std::set<std::int64_t> experts;
            for (std::int64_t j = 0; j < 3; ++j) {
                const auto row = static_cast<std::size_t>(token_rows[token * 3 + j]);
                EXPECT_EQ(row_tokens[row], static_cast<float>(token * 3 + j));
                experts.insert(static_cast<std::int64_t>(row) / route.rows_per_expert);
            }
            EXPECT_EQ(experts.size(), 3U);
        }
        EXPECT_EQ(std::ranges::count_if(row_tokens, [](float t) { return t >= 0; }), 60);
    }
}

TEST_F(Experts, other_passes_and_layers_route_otherwise) {
    step::Route route = route_of(64, 1, 8, 2);
    const Values first = routed(route).token_rows.read();
    EXPECT_EQ(routed(route).token_rows.read(), first);
    EXPECT_NE(routed(route, {.step = 0, .micro_batch = 1}).token_rows.read(), first);
    EXPECT_EQ(routed(route, {.step = 1, .micro_batch = 0}).token_rows.read(), first);
    route.stream = 78;
    EXPECT_NE(routed(route).token_rows.read(), first);
}

// 512 positions, 8 experts, 2 each: mean 128 a sample. Imbalance 0.5 sends a share 0.5 / 3 of the tokens to two
// experts.
TEST_F(Experts, imbalance_is_what_the_fullest_expert_has_above_the_mean) {
    const step::Route route = route_of(512, 2, 8, 2, 0.5);
    const std::vector<std::int64_t> counts = rows_of_experts(route, routed(route));
    const auto fullest = *std::ranges::max_element(counts);
    EXPECT_NEAR(static_cast<double>(fullest), 1.5 * 256, 8);
    EXPECT_LE(fullest, route.rows_per_expert);
    EXPECT_LE(route.rows_per_expert, fullest + 8) << "the bound is close";
    const auto full = std::ranges::count_if(counts, [](std::int64_t c) { return c > 300; });
    EXPECT_EQ(full, 2);
}

TEST_F(Experts, tokens_beyond_the_capacity_are_dropped_and_counted_nowhere) {
    const step::Route route = route_of(512, 1, 8, 2, 0.5, 1.25);
    EXPECT_EQ(route.rows_per_expert, 160);
    const Tables tables = routed(route);
    const std::vector<std::int64_t> counts = rows_of_experts(route, tables);
    EXPECT_EQ(*std::ranges::max_element(counts), 160);
    const Values rows = tables.token_rows.read(), tokens = tables.row_tokens.read();
    const auto dropped = std::ranges::count(rows, -1.0F);
    EXPECT_NEAR(static_cast<double>(dropped), 2 * (192 - 160), 6);
    EXPECT_EQ(std::ranges::count_if(tokens, [](float t) { return t >= 0; }), 512 * 2 - dropped);
}

TEST_F(Experts, a_split_sends_each_token_where_the_whole_does) {
    const plan::Mesh mesh{.cp = 2, .ep = 2};
    for (const double imbalance : {0.0, 0.4}) {
        const step::Route whole = route_of(32, 4, 4, 2, imbalance);
        const Values rows = routed(whole, {.step = 0, .micro_batch = 3}).token_rows.read();
        for (int rank = 0; rank < 4; ++rank) {
            Operand place =
                part({16, 2, 2}, {{0, plan::Axis::cp, step::Shard::Order::zigzag}, {1, plan::Axis::ep}}, mesh, rank);
            place.dtype = DType::int32;
            step::Route mine = whole;
            mine.seq = 16, mine.batch = 2;
            mine.rows_per_expert = step::most_rows({4, 2, imbalance}, place.runs[0]) * 2;
            const Values local = routed(mine, tensor(place), {.step = 0, .micro_batch = 3}).token_rows.read();
            for (std::int64_t i = 0; i < place.elements(); ++i)
                EXPECT_EQ(static_cast<std::int64_t>(local[i]) / mine.rows_per_expert,
                          static_cast<std::int64_t>(rows[index_in_whole(place, i)]) / whole.rows_per_expert);
        }
    }
}

TEST_F(Experts, dispatch_copies_rows_and_its_gradient_adds_them) {
    const step::Route route = route_of(6, 2, 4, 2, 0.5, 1);
    const Tables tables = routed(route);
    const std::int64_t width = 5, rows = 4 * route.rows_per_expert;
    const Values x = normal_values(12 * width, 1), dy = normal_values(rows * width, 2);
    step::Dispatch op{.tokens = 12, .top_k = 2, .rows = rows, .width = width, .factor = 3};
    Tensor& y = tensor({rows, width});
    run(op, {&tensor({12, width}, x), &tables.row_tokens}, {out(y)});
    const Values row_tokens = tables.row_tokens.read(), got = y.read();
    Values dx(x.size());
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < width; ++i) {
            const auto choice = static_cast<std::int64_t>(row_tokens[row]);
            EXPECT_EQ(got[row * width + i], choice < 0 ? 0 : x[choice / 2 * width + i]);
            if (choice >= 0) dx[choice / 2 * width + i] += 3 * dy[row * width + i];
        }
    op.pass = Pass::backward_data;
    Tensor& gradient = tensor({12, width});
    run(op, {&tensor({rows, width}, dy), &tables.token_rows}, {out(gradient)});
    expect_near(gradient.read(), dx, 1e-6F);
}

/// An expert layer by its kernels: route, dispatch, one grouped product, combine.
struct Layer {
    std::int64_t tokens = 12, experts = 4, top_k = 2, width = 5, result = 3, rows = 0;
    step::Dispatch dispatch;
    step::Gemm product;
    step::Combine combine;
    explicit Layer(const step::Route& route) : rows(route.rows_per_expert) {
        dispatch = {.tokens = tokens, .top_k = top_k, .rows = experts * rows, .width = width};
        product = {.batch = experts, .m = rows, .n = result, .k = width, .b = step::Gemm::Transpose::yes};
        combine = {.tokens = tokens, .experts = experts, .top_k = top_k, .rows_per_expert = rows, .width = result};
    }
};

class ExpertLayer : public Experts, public ::testing::WithParamInterface<double> {
protected:
    Values forward(const Layer& at, const Tables& tables, const Values& x, const Values& w, const Values& logits) {
        Tensor& rows = tensor({at.experts, at.rows, at.width});
        run(at.dispatch, {&tensor({at.tokens, at.width}, x), &tables.row_tokens}, {out(rows)});
        Tensor& made = tensor({at.experts, at.rows, at.result});
        run(at.product, {&rows, &tensor({at.experts, at.result, at.width}, w)}, {out(made)});
        Tensor& y = tensor({at.tokens, at.result});
        run(at.combine, {&made, &tensor({at.tokens, at.experts}, logits), &tables.token_rows}, {out(y)});
        return y.read();
    }
};

TEST_P(ExpertLayer, forward_is_the_weighted_sum_of_a_tokens_experts) {
    const step::Route route = route_of(6, 2, 4, 2, 0.5, GetParam());
    const Tables tables = routed(route);
    const Layer at(route);
    const Values x = normal_values(60, 1), w = normal_values(60, 2), logits = normal_values(48, 3);
    const Values token_rows = tables.token_rows.read();
    Values expected(36);
    for (std::int64_t t = 0; t < 12; ++t) {
        double sum = 0;
        for (std::int64_t e = 0; e < 4; ++e) sum += std::exp(static_cast<double>(logits[t * 4 + e]));
        for (std::int64_t j = 0; j < 2; ++j) {
            if (token_rows[t * 2 + j] < 0) continue;
            const std::int64_t e = static_cast<std::int64_t>(token_rows[t * 2 + j]) / at.rows;
            const double p = std::exp(static_cast<double>(logits[t * 4 + e])) / sum;
            for (std::int64_t o = 0; o < 3; ++o)
                for (std::int64_t i = 0; i < 5; ++i)
                    expected[t * 3 + o] += static_cast<float>(p) * w[(e * 3 + o) * 5 + i] * x[t * 5 + i];
        }
    }
    expect_near(forward(at, tables, x, w, logits), expected, 1e-5F);
}

TEST_P(ExpertLayer, gradients_agree_with_finite_differences) {
    const step::Route route = route_of(6, 2, 4, 2, 0.5, GetParam());
    const Tables tables = routed(route);
    Layer at(route);
    const Values x = normal_values(60, 1), w = normal_values(60, 2), logits = normal_values(48, 3);
    const Values dy = normal_values(36, 4);

    Tensor& rows = tensor({at.experts, at.rows, at.width});
    Tensor& weight = tensor({at.experts, at.result, at.width}, w);
    run(at.dispatch, {&tensor({12, 5}, x), &tables.row_tokens}, {out(rows)});
    Tensor& made = tensor({at.experts, at.rows, at.result});
    run(at.product, {&rows, &weight}, {out(made)});
    at.combine.pass = Pass::backward_data;
    Tensor &dmade = tensor({at.experts, at.rows, at.result}), &dlogits = tensor({12, 4});
    run(at.combine, {&tensor({12, 3}, dy), &made, &tensor({12, 4}, logits), &tables.token_rows, &tables.row_tokens},
        {out(dmade), out(dlogits)});
    Tensor &drows = tensor({at.experts, at.rows, at.width}), &dw = tensor({4, 3, 5}), &dx = tensor({12, 5});
    run(step::Gemm{.batch = 4, .m = at.rows, .n = 5, .k = 3}, {&dmade, &weight}, {out(drows)});
    run(step::Gemm{.batch = 4, .m = 3, .n = 5, .k = at.rows, .a = step::Gemm::Transpose::yes}, {&dmade, &rows},
        {out(dw)});
    at.dispatch.pass = Pass::backward_data;
    run(at.dispatch, {&drows, &tables.token_rows}, {out(dx)});

    at.dispatch.pass = at.combine.pass = Pass::forward;
    const auto of_x = [&](const Values& v) { return forward(at, tables, v, w, logits); };
    const auto of_w = [&](const Values& v) { return forward(at, tables, x, v, logits); };
    const auto of_logits = [&](const Values& v) { return forward(at, tables, x, w, v); };
    expect_near(dx.read(), numeric_gradient(x, dy, of_x), 5e-3F);
    expect_near(dw.read(), numeric_gradient(w, dy, of_w), 5e-3F);
    expect_near(dlogits.read(), numeric_gradient(logits, dy, of_logits), 5e-3F);
}

INSTANTIATE_TEST_SUITE_P(capacities, ExpertLayer, ::testing::Values(0.0, 1.0));

TEST_F(Experts, a_bound_that_is_too_small_is_an_error_where_nothing_may_be_dropped) {
    step::Route route = route_of(16, 1, 4, 2);
    --route.rows_per_expert;
    EXPECT_THROW(routed(route), LogicError);
}

}  // namespace
}  // namespace lockstep::cpu::testing
