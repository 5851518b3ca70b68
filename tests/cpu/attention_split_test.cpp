// Attention whose samples, heads or sequence are spread over ranks equals attention on one.
#include <fmt/format.h>

#include "cpu/attention_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using plan::Axis;
using step::Access;
using step::Shard;

class SplitAttention : public AttentionTest {
protected:
    static constexpr Moment moment{2, 1};

    static std::vector<Shard> sequence_over_cp(const step::Attention& a) {
        return {{0, Axis::cp, a.causal ? Shard::Order::zigzag : Shard::Order::contiguous}};
    }
    /// One rank of a ring; its tensors live as long as the test.
    struct Rank {
        Tensor *qkv, *context, *lse, *dcontext, *dqkv;
        std::vector<Tensor*> kv, dkv;  ///< of the rank that many places before
    };
    Rank make_rank(const step::Attention& a, const plan::Mesh& mesh, int rank, const Values& qkv,
                   const Values& gradient) {
        const std::vector<Shard> shards = sequence_over_cp(a);
        const Operand place = part(qkv_shape(a), shards, mesh, rank);
        const Operand out_place = part(context_shape(a), shards, mesh, rank);
        return {&tensor(place, qkv),
                &tensor(out_place),
                &tensor({a.batch, a.heads, a.seq}),
                &tensor(out_place, gradient),
                &tensor(place, Values(static_cast<std::size_t>(place.global.elements()), 9)),
                {},
                {}};
    }
    /// What travels: the keys and values of `from`, whose positions come along.
    Tensor& travelling(const step::Attention& a, const Tensor& from, float fill) {
        const std::int64_t width = a.kv_heads * 2 * a.head_dim, sharing = a.heads / a.kv_heads;
        const Values qkv = from.read();
        Values kv;
        for (std::int64_t group = 0; group < a.seq * a.batch * a.kv_heads; ++group) {
            const auto first = qkv.begin() + (group * (sharing + 2) + sharing) * a.head_dim;
            kv.insert(kv.end(), first, first + 2 * a.head_dim);
        }
        if (fill != 0) kv.assign(kv.size(), fill);
        Tensor& t = tensor({a.seq, a.batch, width}, kv);
        t.operand.global = Shape{from.operand.global[0], a.batch, width};
        t.operand.runs[0] = from.operand.runs[0];
        return t;
    }
    /// All ranks of a ring of n; `a` is of the whole.
    Result ring(step::Attention a, int n, const Values& qkv, const Values& gradient) {
        plan::Mesh mesh;
        mesh.cp = n;
        a.part = step::Attention::Part::ring;
        a.ring_size = n;
        a.seq /= n;
        std::vector<Rank> ranks;
        for (int r = 0; r < n; ++r) ranks.push_back(make_rank(a, mesh, r, qkv, gradient));
        for (Rank& rank : ranks) forward(a, rank, ranks, static_cast<int>(&rank - ranks.data()));
        a.pass = step::Pass::backward_data;
        for (Rank& rank : ranks) rank.dkv = {&travelling(a, *rank.qkv, 5)};  // step 0 overwrites, the other ranks add
        for (int step = 0; step < n; ++step)
            for (int r = 0; r < n; ++r) backward(a, ranks[r], *ranks[(r - step + n) % n].dkv[0], step);
        return gather(a, ranks);
    }
    void forward(step::Attention a, Rank& rank, const std::vector<Rank>& ranks, int r) {
        for (a.ring_step = 0; a.ring_step < a.ring_size; ++a.ring_step) {
            const Access access = a.ring_step == 0 ? Access::overwrite : Access::update;
            rank.kv.push_back(&travelling(a, *ranks[(r - a.ring_step + a.ring_size) % a.ring_size].qkv, 0));
            run(a, {rank.qkv, rank.kv.back()}, {out(*rank.context, access), out(*rank.lse, access)}, moment);
        }
    }
    void backward(step::Attention a, Rank& rank, const Tensor& dkv, int step) {
        a.ring_step = step;
        const Access access = step == 0 ? Access::overwrite : Access::update;
        const Access adding = step == 0 ? Access::overwrite : Access::accumulate;
        run(a, {rank.dcontext, rank.qkv, rank.kv[step], rank.context, rank.lse},
            {out(*rank.dqkv, access), out(dkv, adding)}, moment);
    }
    /// dqkv holds the queries' gradients and zeros; the keys' and values' are in dkv.
    static Result gather(const step::Attention& a, const std::vector<Rank>& ranks) {
        Result whole;
        const std::int64_t sharing = a.heads / a.kv_heads, group = (sharing + 2) * a.head_dim, d = a.head_dim;
        for (const Rank& rank : ranks) {
            put(rank.context->read(), rank.context->operand, whole.context);
            Values dqkv = rank.dqkv->read();
            const Values dkv = rank.dkv[0]->read();
            for (std::size_t i = 0; i < dkv.size(); ++i) {
                float& at = dqkv[static_cast<std::int64_t>(i) / (2 * d) * group + sharing * d +
                                 static_cast<std::int64_t>(i) % (2 * d)];
                EXPECT_EQ(at, 0.0F) << "keys and values are cleared";
                at += dkv[i];
            }
            put(dqkv, rank.dqkv->operand, whole.dqkv);
        }
        return whole;
    }
};

TEST_F(SplitAttention, a_ring_of_2_or_4_equals_the_whole_forward_and_backward) {
    for (const int n : {2, 4})
        for (const bool causal : {true, false})
            for (const double dropout : {0.0, 0.3}) {
                SCOPED_TRACE(fmt::format("{} ranks, causal {}, dropout {}", n, causal, dropout));
                step::Attention a = attention(24, 2, 4, 2, 5);
                a.causal = causal;
                a.dropout = dropout;
                const Values qkv = normal_values(qkv_shape(a).elements(), 1);
                const Values gradient = normal_values(context_shape(a).elements(), 2);
                const Result whole = both(a, qkv, gradient, moment);
                const Result split = ring(a, n, qkv, gradient);
                expect_near(split.context, whole.context, 1e-5F);
                expect_near(split.dqkv, whole.dqkv, 2e-5F);
            }
}

TEST_F(SplitAttention, a_ring_with_several_blocks_a_rank_equals_the_whole) {
    step::Attention a = attention(2 * 2 * 150, 1, 1, 1, 8);
    const Values qkv = normal_values(qkv_shape(a).elements(), 1);
    const Values gradient = normal_values(context_shape(a).elements(), 2);
    const Result whole = both(a, qkv, gradient, moment), split = ring(a, 2, qkv, gradient);
    expect_near(split.context, whole.context, 1e-5F);
    expect_near(split.dqkv, whole.dqkv, 3e-5F);
}

TEST_F(SplitAttention, splits_over_samples_and_heads_equal_the_whole_under_dropout) {
    for (const auto algorithm : {plan::AttentionAlgorithm::flash, plan::AttentionAlgorithm::unfused}) {
        step::Attention a = attention(9, 4, 8, 4, 3);
        a.algorithm = algorithm;
        a.dropout = 0.4;
        const Values qkv = normal_values(qkv_shape(a).elements(), 1);
        const Values gradient = normal_values(context_shape(a).elements(), 2);
        const Result whole = both(a, qkv, gradient, moment);
        plan::Mesh mesh;
        mesh.tp = mesh.dp = 2;
        a.batch = 2;
        a.heads = 4;
        a.kv_heads = 2;
        const std::vector<Shard> shards{{1, Axis::dp}, {2, Axis::tp}};
        for (int rank = 0; rank < mesh.ranks(); ++rank) {
            const Operand qkv_part = part(qkv_shape(a), shards, mesh, rank);
            const Operand context_part = part(context_shape(a), shards, mesh, rank);
            const Result mine = both(a, qkv, gradient, moment, qkv_part, context_part);
            expect_near(mine.context, take(whole.context, context_part), 1e-6F);
            expect_near(mine.dqkv, take(whole.dqkv, qkv_part), 1e-5F);
            // The same with heads and their elements as one dimension.
            const Operand flat = part({a.seq, a.batch, a.heads * a.head_dim}, shards, mesh, rank);
            expect_near(both(a, qkv, gradient, moment, qkv_part, flat).context, mine.context, 0);
        }
    }
}

TEST_F(SplitAttention, a_ring_step_that_would_lose_the_steps_before_is_refused) {
    step::Attention a = attention(4, 1, 1, 1, 2);
    a.part = step::Attention::Part::ring;
    a.ring_size = 2;
    a.ring_step = 1;
    Tensor& qkv = tensor(qkv_shape(a));
    Tensor& kv = tensor({4, 1, 4});
    Tensor& context = tensor(context_shape(a));
    Tensor& lse = tensor({1, 1, 4});
    EXPECT_THROW(make(a, {&qkv, &kv}, {out(context), out(lse)}), LogicError);
}

}  // namespace
}  // namespace lockstep::cpu::testing
