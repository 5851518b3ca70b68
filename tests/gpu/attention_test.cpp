// Attention on the GPU's double beside the CPU's: composed and fused, whole and around a ring.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/error.hpp"
#include "gpu/attention_composed.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using plan::AttentionAlgorithm;
using step::Access;
using step::Shard;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Moment moment{3, 1};

/// seq, batch, heads, kv_heads, head_dim.
step::Attention attention(std::int64_t seq, std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                          std::int64_t head_dim) {
    step::Attention a;
    a.seq = seq;
    a.batch = batch;
    a.heads = heads;
    a.kv_heads = kv_heads;
    a.head_dim = head_dim;
    a.dropout_stream = 9;
    return a;
}
Shape qkv_shape(const step::Attention& a) { return {a.seq, a.batch, a.kv_heads, a.heads / a.kv_heads + 2, a.head_dim}; }
Shape context_shape(const step::Attention& a) { return {a.seq, a.batch, a.heads, a.head_dim}; }

/// What a forward pass keeps.
Slots saved(const step::Attention& a, DType dtype) {
    if (a.algorithm == AttentionAlgorithm::flash) return {result({a.batch, a.heads, a.seq})};
    const Shape scores{a.batch, a.heads, a.seq, a.seq};
    Slots slots{result(scores, dtype)};
    if (a.dropout > 0) {
        slots.push_back(result(scores, DType::uint8));
        slots.push_back(result(scores, dtype));
    }
    return slots;
}
Case forward_case(const step::Attention& a, DType dtype) {
    Case c{step::Compute{a}, {}, {}, {moment}};
    c.in.push_back(slot(qkv_shape(a), normal_values(qkv_shape(a).elements(), 1), dtype));
    c.out.push_back(result(context_shape(a), dtype));
    for (Slot& s : saved(a, dtype)) c.out.push_back(std::move(s));
    return c;
}
/// The backward pass after a forward pass on the CPU.
Case backward_case(step::Attention a, DType dtype) {
    const Case forward = forward_case(a, dtype);
    const std::vector<Values> made = run_on_cpu(forward).front();
    a.pass = step::Pass::backward_data;
    Case c{step::Compute{a}, {}, {}, {moment}};
    c.in.push_back(slot(context_shape(a), normal_values(context_shape(a).elements(), 2), dtype));
    c.in.push_back(forward.in[0]);
    for (std::size_t i = 0; i < made.size(); ++i) {
        c.in.push_back(forward.out[i]);
        c.in.back().values = made[i];
    }
    c.out.push_back(result(qkv_shape(a), dtype));
    c.out[0].values.assign(c.out[0].values.size(), 9);  // overwritten
    c.tolerance = dtype == DType::fp32 ? 3 : 4;
    return c;
}

/// A kernel on operands of its own, and what it says of itself.
struct Made {
    explicit Made(const Case& c) {
        for (const Slot& s : c.in) operands.in.push_back(tensors.emplace_back(s).operand());
        for (const Slot& s : c.out) operands.out.push_back({tensors.emplace_back(s).operand(), s.access});
    }
    std::string algorithm(const Case& c) { return make_kernel(c.named(), operands, setup)->algorithm(); }
    std::deque<DeviceTensor> tensors;
    Operands operands;
    BlasLt blas;
    Dnn dnn;
    KernelSetup setup{blas, dnn, test_seed};
};
std::string algorithm_of(const Case& c) { return Made(c).algorithm(c); }

// ---- composed

struct ComposedCase {
    AttentionAlgorithm algorithm;
    bool causal;
    double dropout;
    DType dtype;
};
class ComposedAttentionTest : public ::testing::TestWithParam<ComposedCase> {
protected:
    static step::Attention with(step::Attention a) {
        a.algorithm = GetParam().algorithm;
        a.causal = GetParam().causal;
        a.dropout = GetParam().dropout;
        return a;
    }
};

TEST_P(ComposedAttentionTest, equals_the_cpus_with_heads_that_share_keys_or_not) {
    for (const std::int64_t kv_heads : {1, 2, 4}) {
        const step::Attention a = with(attention(37, 3, 4, kv_heads, 6));  // no fused engine has heads of 6
        const Case forward = forward_case(a, GetParam().dtype), backward = backward_case(a, GetParam().dtype);
        EXPECT_THAT(algorithm_of(forward), StartsWith("composed ("));
        expect_parity(forward);
        expect_parity(backward);
    }
}

std::vector<ComposedCase> composed_cases() {
    std::vector<ComposedCase> cases;
    for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused})
        for (const bool causal : {false, true})
            for (const double dropout : {0.0, 0.3})
                for (const DType dtype : float_types) cases.push_back({algorithm, causal, dropout, dtype});
    return cases;
}
INSTANTIATE_TEST_SUITE_P(Composed, ComposedAttentionTest, ::testing::ValuesIn(composed_cases()));

TEST(ComposedAttention, is_the_same_in_tiles_of_any_size) {
    for (const bool causal : {false, true})
        for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
            step::Attention a = attention(100, 3, 4, 2, 8);
            a.causal = causal;
            a.algorithm = algorithm;
            for (Case c : {forward_case(a, DType::fp32), backward_case(a, DType::fp32)}) {
                const Values expected = run_on_cpu(c).front()[0];
                for (const std::int64_t bytes : {1, 20000, 700000}) {
                    Made made(c);
                    const auto op = std::get<step::Attention>(std::get<step::Compute>(c.op));
                    const auto kernel = make_composed_attention(op, MathType::fp32, made.operands, made.setup, bytes);
                    const DeviceMemory workspace = allocate_device(kernel->workspace_bytes(), "workspace");
                    kernel->bind_workspace(workspace.get());
                    const Stream stream = make_stream();
                    kernel->enqueue(moment, stream.get());
                    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
                    cpu::testing::expect_near(made.tensors[c.in.size()].read(), expected, 3e-5F);
                }
            }
        }
}

TEST(ComposedAttention, tiles_cover_each_query_once_and_stay_within_their_bytes) {
    // 6 groups of 2 heads, 5000 queries and keys: 2 x 5000 scores x 8 bytes of a query, 10 MB hold 125 queries.
    const step::Attention a = attention(5000, 3, 4, 2, 8);
    Operand context, keys;
    static_cast<step::Place&>(context) = slot({5000, 3, 32});
    static_cast<step::Place&>(keys) = slot(qkv_shape(a));
    const AttentionPlace place = place_attention(a, context, keys);
    for (const std::int64_t bytes : {10'000'000, 1'000'000'000}) {
        std::vector<int> seen(6 * 5000);
        for (const AttentionChunk& chunk : plan_tiles(place, context.runs[0], 8, bytes))
            for (const AttentionTile& t : chunk.tiles) {
                EXPECT_LE(t.groups * 2 * t.queries * t.row * 8, bytes);
                EXPECT_EQ(t.keys, t.first_query + t.queries);  // what the last one sees
                EXPECT_LE(t.queries, 1024);
                for (std::int64_t g = t.first_group; g < t.first_group + t.groups; ++g)
                    for (std::int64_t q = t.first_query; q < t.first_query + t.queries; ++q) ++seen[g * 5000 + q];
            }
        EXPECT_THAT(seen, ::testing::Each(1));
    }
}

TEST(ComposedAttention, multiplies_in_tf32_where_the_op_says_so) {
    Case c = forward_case(attention(40, 2, 4, 2, 16), DType::fp32);
    const Values exact = run_on_gpu(c).front()[0];
    c.math = MathType::tf32;
    const Values rounded = run_on_gpu(c).front()[0];
    EXPECT_NE(rounded, exact);
    cpu::testing::expect_near(rounded, exact, 2e-3F);
}

// ---- split over ranks

/// Steps of a ring, each beside the CPU's step on what the CPU made before.
class RingAttention : public ::testing::Test {
protected:
    struct Rank {
        Slot qkv, context, log_sum_exp, dcontext, dqkv;
    };
    /// The keys and values of `from`, whose positions come along.
    static Slot travelling(const step::Attention& a, const Slot& from) {
        const std::int64_t sharing = a.heads / a.kv_heads;
        Values kv;
        for (std::int64_t group = 0; group < a.seq * a.batch * a.kv_heads; ++group) {
            const auto first = from.values.begin() + (group * (sharing + 2) + sharing) * a.head_dim;
            kv.insert(kv.end(), first, first + 2 * a.head_dim);
        }
        Slot s = slot({a.seq, a.batch, a.kv_heads, 2, a.head_dim}, kv, from.dtype);
        s.global.extents[0] = from.global[0];
        s.runs[0] = from.runs[0];
        return s;
    }
    static Slot with_access(Slot s, Access access) {
        s.access = access;
        return s;
    }
    static void step_through(step::Attention a, int n, DType dtype) {
        plan::Mesh mesh;
        mesh.cp = n;
        const std::vector<Shard> shards{
            {0, plan::Axis::cp, a.causal ? Shard::Order::zigzag : Shard::Order::contiguous}};
        const Values qkv = normal_values(qkv_shape(a).elements(), 1);
        const Values gradient = normal_values(context_shape(a).elements(), 2);
        a.part = step::Attention::Part::ring;
        a.ring_size = n;
        a.seq /= n;
        std::vector<Rank> ranks;
        for (int r = 0; r < n; ++r)
            ranks.push_back({part(qkv_shape(a), shards, mesh, r, qkv, dtype),
                             part(context_shape(a), shards, mesh, r, {}, dtype), result({a.batch, a.heads, a.seq}),
                             part(context_shape(a), shards, mesh, r, gradient, dtype),
                             part(qkv_shape(a), shards, mesh, r, Values(qkv.size(), 9), dtype)});
        for (Rank& rank : ranks) forward(a, rank, ranks);
        a.pass = step::Pass::backward_data;
        for (Rank& rank : ranks) backward(a, rank, ranks);
    }
    static const Slot& keys_from(const step::Attention& a, const Rank& rank, const std::vector<Rank>& ranks) {
        const auto r = static_cast<int>(&rank - ranks.data());
        return ranks[static_cast<std::size_t>((r - a.ring_step + a.ring_size) % a.ring_size)].qkv;
    }
    static void forward(step::Attention a, Rank& rank, const std::vector<Rank>& ranks) {
        for (a.ring_step = 0; a.ring_step < a.ring_size; ++a.ring_step) {
            SCOPED_TRACE(fmt::format("forward, step {}", a.ring_step));
            const Access access = a.ring_step == 0 ? Access::overwrite : Access::update;
            const Case c{step::Compute{a},
                         {rank.qkv, travelling(a, keys_from(a, rank, ranks))},
                         {with_access(rank.context, access), with_access(rank.log_sum_exp, access)},
                         {moment}};
            expect_parity(c);
            const std::vector<Values> made = run_on_cpu(c).front();
            rank.context.values = made[0];
            rank.log_sum_exp.values = made[1];
        }
    }
    static void backward(step::Attention a, Rank& rank, const std::vector<Rank>& ranks) {
        for (a.ring_step = 0; a.ring_step < a.ring_size; ++a.ring_step) {
            SCOPED_TRACE(fmt::format("backward, step {}", a.ring_step));
            const Access access = a.ring_step == 0 ? Access::overwrite : Access::update;
            const Slot kv = travelling(a, keys_from(a, rank, ranks));
            Slot dkv = with_access(kv, access);
            dkv.values = normal_values(dkv.elements(), 3);  // lost in step 0, added to later
            Case c{step::Compute{a},
                   {rank.dcontext, rank.qkv, kv, rank.context, rank.log_sum_exp},
                   {with_access(rank.dqkv, access), dkv},
                   {moment}};
            c.tolerance = 4;
            expect_parity(c);
            rank.dqkv.values = run_on_cpu(c).front()[0];
        }
    }
};

TEST_F(RingAttention, each_step_on_each_rank_equals_the_cpus) {
    for (const int n : {2, 4})
        for (const bool causal : {true, false})
            for (const double dropout : {0.0, 0.3}) {
                SCOPED_TRACE(fmt::format("{} ranks, causal {}, dropout {}", n, causal, dropout));
                step::Attention a = attention(24, 2, 4, 2, 5);
                a.causal = causal;
                a.dropout = dropout;
                step_through(a, n, DType::fp32);
            }
}
TEST_F(RingAttention, steps_in_16_bits_equal_the_cpus) {
    step_through(attention(24, 2, 4, 2, 8), 2, DType::bf16);
    step_through(attention(24, 2, 4, 2, 8), 2, DType::fp16);
}

TEST_F(RingAttention, a_step_that_would_lose_the_steps_before_is_refused) {
    step::Attention a = attention(4, 1, 1, 1, 2);
    a.part = step::Attention::Part::ring;
    a.ring_size = 2;
    a.ring_step = 1;
    const Case c{
        step::Compute{a}, {slot(qkv_shape(a)), slot({4, 1, 1, 2, 2})}, {result(context_shape(a)), result({1, 1, 4})}};
    EXPECT_THROW(algorithm_of(c), LogicError);
}

TEST(SplitAttention, draws_of_a_rank_are_those_of_the_whole) {
    for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
        plan::Mesh mesh;
        mesh.tp = mesh.dp = 2;
        step::Attention a = attention(9, 2, 4, 2, 3);
        a.algorithm = algorithm;
        a.dropout = 0.4;
        const std::vector<Shard> shards{{1, plan::Axis::dp}, {2, plan::Axis::tp}};
        const Values qkv = normal_values(4 * qkv_shape(a).elements(), 1);
        for (int rank = 0; rank < mesh.ranks(); ++rank)
            for (const bool flat : {false, true}) {  // heads and their elements as one dimension
                Case c = forward_case(a, DType::fp32);
                c.in[0] = part(qkv_shape(a), shards, mesh, rank, qkv);
                const Shape shape = flat ? Shape{a.seq, a.batch, a.heads * a.head_dim} : context_shape(a);
                c.out[0] = part(shape, shards, mesh, rank, {});
                expect_parity(c);
            }
    }
}

// ---- fused

TEST(FusedAttention, equals_the_cpus_within_the_rounding_of_its_type) {
    for (const DType dtype : {DType::fp16, DType::bf16})
        for (const bool causal : {false, true})
            for (const std::int64_t kv_heads : {1, 2, 4})
                for (const std::int64_t head_dim : {8, 64}) {
                    step::Attention a = attention(40, 2, 4, kv_heads, head_dim);
                    a.causal = causal;
                    for (const Case& c : {forward_case(a, dtype), backward_case(a, dtype)}) {
                        EXPECT_EQ(algorithm_of(c), "fused: cuDNN engine 6");
                        expect_parity(c);
                    }
                }
}

TEST(FusedAttention, is_not_asked_for_what_it_can_not_do_and_the_record_says_so) {
    const auto reason = [](step::Attention a, DType dtype) { return algorithm_of(forward_case(a, dtype)); };
    step::Attention a = attention(16, 1, 2, 2, 8);
    EXPECT_EQ(reason(a, DType::fp32), "composed (fp32)");
    a.head_dim = 12;
    EXPECT_EQ(reason(a, DType::bf16), "composed (heads of 12 elements)");
    a.head_dim = 8;
    a.dropout = 0.1;
    EXPECT_EQ(reason(a, DType::bf16), "composed (dropout by element)");
    a.dropout = 0;
    a.algorithm = AttentionAlgorithm::unfused;
    EXPECT_EQ(reason(a, DType::bf16), "composed (probabilities are kept)");
}

/// Plans that the double's cuDNN can't make.
class FailingPlans : public ::testing::Test {
protected:
    static void fail(const char* calls) { setenv("LOCKSTEP_DOUBLE_FAIL", calls, 1); }
    ~FailingPlans() override { unsetenv("LOCKSTEP_DOUBLE_FAIL"); }
};

TEST_F(FailingPlans, leave_it_to_the_next_proposal) {
    const Case c = forward_case(attention(16, 1, 2, 2, 8), DType::bf16);
    fail("cudnnBackendFinalize.plan:1:3000");
    EXPECT_EQ(algorithm_of(c), "fused: cuDNN engine 7");
}

TEST_F(FailingPlans, of_all_proposals_leave_it_to_composition) {
    const Case c = forward_case(attention(16, 1, 2, 2, 8), DType::bf16);
    fail("cudnnBackendFinalize.plan:1:3000,cudnnBackendFinalize.plan:2:3000");
    EXPECT_THAT(algorithm_of(c), StartsWith("composed (cuDNN has no fused attention for it here: "));
    unsetenv("LOCKSTEP_DOUBLE_FAIL");
    expect_parity(c);
}

TEST_F(FailingPlans, equal_layers_share_one_plan) {
    const Case c = forward_case(attention(16, 1, 2, 2, 8), DType::bf16);
    Made made(c);
    EXPECT_EQ(made.algorithm(c), "fused: cuDNN engine 6");
    fail("cudnnBackendFinalize.plan:1:3000");
    EXPECT_EQ(made.algorithm(c), "fused: cuDNN engine 6");  // no second one is made
    const Case other = forward_case(attention(17, 1, 2, 2, 8), DType::bf16);
    EXPECT_EQ(Made(other).algorithm(other), "fused: cuDNN engine 7");
}

}  // namespace
}  // namespace lockstep::gpu::testing
