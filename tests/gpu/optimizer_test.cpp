// Optimizers over several parameters at once and loss scaling beside the CPU's.
#include <limits>

#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using plan::Optimizer;
using step::Access;

struct Kinds {
    Optimizer kind;
    DType parameter, gradient;
};

/// Parameters of odd sizes, of which some begin inside a pack; one is longer than a chunk.
Case update_of(const Kinds& kinds, bool has_loss_scale) {
    const std::vector<std::int64_t> sizes{1, 5, 130, 16384 + 7};
    step::OptimizerUpdate op;
    op.kind = kinds.kind;
    op.parameters = std::ssize(sizes);
    op.learning_rate = 0.125;
    op.gradient_factor = 0.5;
    op.has_master = kinds.parameter != DType::fp32;
    op.has_loss_scale = has_loss_scale;
    Case c;
    for (const std::int64_t n : sizes) {
        op.count += n;
        const std::int64_t skew = n % 4 == 1 ? 3 : 0;
        const auto add = [&](Slots& slots, DType type, Values values) {
            Slot s = slot({n}, std::move(values), type);
            s.access = Access::update;
            s.skew = skew;
            slots.push_back(std::move(s));
        };
        const auto stream = static_cast<std::uint64_t>(n);
        add(c.in, kinds.gradient, normal_values(n, stream));
        add(c.out, kinds.parameter, normal_values(n, stream + 1));
        add(c.out, DType::fp32, normal_values(n, stream + 2, 0.1F));
        Values squares = normal_values(n, stream + 3, 0.1F);
        for (float& square : squares) square *= square;
        if (kinds.kind == Optimizer::adam) add(c.out, DType::fp32, std::move(squares));
        if (op.has_master) add(c.out, DType::fp32, normal_values(n, stream + 1));
    }
    if (has_loss_scale) {
        c.in.push_back(slot({1}, {0}));
        c.in.push_back(slot({1}, {8}));
    }
    c.op = step::Compute{op};
    c.moments = {{0, 0}, {1, 0}, {2, 0}};
    return c;
}

TEST(GpuOptimizer, both_kinds_update_parameters_of_all_types_as_the_cpu_does) {
    for (const Optimizer kind : {Optimizer::sgd_momentum, Optimizer::adam})
        for (const DType parameter : float_types)
            for (const DType gradient : {parameter, DType::fp32})
                expect_parity(update_of({kind, parameter, gradient}, false));
}

TEST(GpuOptimizer, a_step_that_overflowed_changes_nothing_and_is_not_counted) {
    for (const Optimizer kind : {Optimizer::sgd_momentum, Optimizer::adam}) {
        Case c = update_of({kind, DType::fp32, DType::fp32}, true);
        const std::size_t found_inf = c.in.size() - 2;
        c.changes = {{1, found_inf, {1}}, {2, found_inf, {0}}, {2, found_inf + 1, {4}}};
        expect_parity(c);
        const Results results = run_on_gpu(c);
        EXPECT_EQ(results[0], results[1]);
        EXPECT_NE(results[1], results[2]);
    }
}

TEST(GpuOptimizer, gradients_of_two_types_are_updated_by_one_op) {
    Case c = update_of({Optimizer::adam, DType::fp32, DType::fp32}, false);
    c.in[1].dtype = DType::bf16;
    c.in[3].dtype = DType::fp16;
    expect_parity(c);
}

TEST(GpuFoundInf, finds_infinities_and_not_a_numbers_in_any_gradient) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float odd : {0.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()})
        for (std::size_t which = 0; which < 3; ++which) {
            Case c{step::Compute{step::FoundInf{16384 + 1000 + 8}},
                   {slot({16384 + 7}, normal_values(16384 + 7, 1), DType::fp32),
                    slot({1000}, normal_values(1000, 2), DType::fp16), slot({1}, {3}, DType::bf16)},
                   {slot({1}, {9})}};
            c.in[which].skew = 1;
            c.in[which].values.back() = odd;
            expect_parity(c);
            EXPECT_EQ(run_on_gpu(c)[0][0], Values{odd == 0 ? 0.0F : 1.0F});
        }
}

TEST(GpuLossScale, is_halved_on_overflow_and_doubled_after_2000_good_steps) {
    Case c{step::Compute{step::UpdateLossScale{}},
           {slot({1}, {0})},
           {slot({1}, {65536}), slot({1}, {1997})},
           {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}},
           MathType::fp32,
           1,
           {{1, 0, {1}}, {2, 0, {0}}}};
    for (Slot& s : c.out) s.access = Access::update;
    expect_parity(c);
    c.changes = {};
    EXPECT_EQ(run_on_gpu(c)[2], (std::vector<Values>{{131072}, {0}}));
}

}  // namespace
}  // namespace lockstep::gpu::testing
