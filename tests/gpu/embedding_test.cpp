// Embeddings, their gradient, and the first token of sequences beside the CPU's.
#include "base/error.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using step::Access;
using step::Pass;

TEST(GpuEmbedding, ranks_look_up_the_rows_they_have_and_zeros_for_others) {
    plan::Mesh mesh;
    mesh.tp = 3;
    const Slot ids = slot({6}, {7, 0, 11, 7, 4, 5}, DType::int32);
    for (const DType type : float_types)
        for (const std::int64_t hidden : {3, 32})
            for (int rank = 0; rank < 3; ++rank)
                expect_parity(
                    {step::Compute{step::Embedding{6, 4, hidden}},
                     {ids, part({4, hidden}, {{0, plan::Axis::tp}}, mesh, rank, normal_values(12 * hidden, 1), type)},
                     {slot({6, hidden}, normal_values(6 * hidden, 2), type)}});
}

TEST(GpuEmbedding, the_gradient_adds_equal_ids_in_the_order_of_tokens_and_clears_other_rows) {
    plan::Mesh mesh;
    mesh.tp = 2;
    Values ids;  // the first is everywhere, some come twice, many not at all
    for (int i = 0; i < 50; ++i) ids.push_back(static_cast<float>(i % 3 == 0 ? 5 : i * 7 % 40));
    for (const DType type : float_types)
        for (const DType table : {type, DType::fp32})
            for (const std::int64_t hidden : {3, 32})
                for (int rank = 0; rank < 2; ++rank) {
                    Slot dtable =
                        part({20, hidden}, {{0, plan::Axis::tp}}, mesh, rank, normal_values(40 * hidden, 2), table);
                    dtable.access = Access::accumulate_micro_batches;
                    expect_parity(
                        {step::Compute{step::Embedding{50, 20, hidden, Pass::backward_weights}},
                         {slot({50, hidden}, normal_values(50 * hidden, 1), type), slot({50}, ids, DType::int32)},
                         {dtable},
                         {{0, 0}, {0, 1}}});
                }
}

TEST(GpuEmbedding, in_fp32_the_gradient_is_the_cpus_bit_by_bit) {
    const Slot dy = slot({64, 4}, normal_values(256, 1)), ids = slot({64}, Values(64, 1), DType::int32);
    const Case c{step::Compute{step::Embedding{64, 2, 4, Pass::backward_weights}}, {dy, ids}, {result({2, 4})}};
    EXPECT_EQ(run_on_gpu(c), run_on_cpu(c));
}

TEST(GpuEmbedding, tables_split_along_their_width_and_casts_are_refused) {
    plan::Mesh mesh;
    mesh.tp = 2;
    const Slot ids = slot({1}, {0}, DType::int32);
    EXPECT_THROW(run_on_gpu({step::Compute{step::Embedding{1, 4, 2}},
                             {ids, part({4, 2}, {{1, plan::Axis::tp}}, mesh, 0, {})},
                             {result({1, 2})}}),
                 LogicError);
    EXPECT_THROW(
        run_on_gpu({step::Compute{step::Embedding{1, 4, 2}}, {ids, slot({4, 2})}, {result({1, 2}, DType::bf16)}}),
        LogicError);
}

TEST(GpuFirstToken, takes_and_returns_position_0) {
    for (const DType type : float_types) {
        const Values x = normal_values(4 * 2 * 5, 1);
        expect_parity({step::Compute{step::FirstToken{2, 4, 5}}, {slot({4, 2, 5}, x, type)}, {result({2, 5}, type)}});
        expect_parity({step::Compute{step::FirstToken{2, 4, 5, Pass::backward_data}},
                       {slot({2, 5}, normal_values(10, 2), type)},
                       {slot({4, 2, 5}, x, type)}});
    }
    plan::Mesh mesh;
    mesh.cp = 2;
    EXPECT_THROW(run_on_gpu({step::Compute{step::FirstToken{2, 2, 5}},
                             {part({2, 2, 5}, {{0, plan::Axis::cp}}, mesh, 1, {})},
                             {result({2, 5})}}),
                 LogicError);
}

}  // namespace
}  // namespace lockstep::gpu::testing
