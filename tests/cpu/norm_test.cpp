// Batch, layer and RMS norm against their formulas; gradients by central differences.
#include <cmath>

#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using Kind = model::Norm::Kind;
using step::Access;
using step::Pass;

/// Which statistics an element belongs to, and which feature.
struct Place {
    std::int64_t group, feature;
};
Place place_of(const step::Norm& n, std::int64_t i) {
    if (n.kind == Kind::batch) return {i / n.spatial % n.features, i / n.spatial % n.features};
    return {i / n.features, i % n.features};
}
std::int64_t groups(const step::Norm& n) { return n.kind == Kind::batch ? n.features : n.rows; }

struct Statistics {
    std::vector<double> mean, inverse;
};
Statistics statistics(const step::Norm& n, const Values& x) {
    Statistics s{std::vector<double>(groups(n)), std::vector<double>(groups(n))};
    const auto count = static_cast<double>(x.size()) / static_cast<double>(groups(n));
    if (n.kind != Kind::rms)
        for (std::size_t i = 0; i < x.size(); ++i) s.mean[place_of(n, i).group] += x[i] / count;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = x[i] - s.mean[place_of(n, i).group];
        s.inverse[place_of(n, i).group] += d * d / count;
    }
    for (double& v : s.inverse) v = 1 / std::sqrt(v + n.epsilon);
    return s;
}
Values naive(const step::Norm& n, const Values& x, const Values& scale, const Values& shift) {
    const Statistics s = statistics(n, x);
    Values y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const Place at = place_of(n, i);
        const double normal = (x[i] - s.mean[at.group]) * s.inverse[at.group];
        y.push_back(static_cast<float>(normal * scale[at.feature] + (n.kind == Kind::rms ? 0 : shift[at.feature])));
    }
    return y;
}

struct Case {
    step::Norm norm;
    Shape shape;
    Order order;
};
std::vector<Case> cases() {
    const step::Norm batch{Kind::batch, 3, 8, 10}, layer{Kind::layer, 5, 12, 1}, rms{Kind::rms, 5, 12, 1};
    return {{batch, {3, 8, 2, 5}, Order::row_major},
            {batch, {3, 8, 2, 5}, Order::channels_last},
            {batch, {3, 8, 2, 5}, Order::blocked8},
            {layer, {5, 12}, Order::row_major},
            {rms, {5, 12}, Order::row_major}};
}

class Norm : public KernelTest {};

TEST_F(Norm, forward_and_gradients_follow_the_formulas) {
    for (const Case& t : cases()) {
        step::Norm n = t.norm;
        const bool is_rms = n.kind == Kind::rms;
        const Values xs = normal_values(t.shape.elements(), 1), gradient = normal_values(t.shape.elements(), 2);
        Tensor& x = tensor(t.shape, xs, t.order);
        Tensor& scale = tensor({n.features}, normal_values(n.features, 3));
        Tensor& shift = tensor({n.features}, normal_values(n.features, 4));
        Tensor& y = tensor(t.shape, {}, t.order);
        Tensor& mean = tensor({groups(n)});
        Tensor& inverse = tensor({groups(n)});
        if (is_rms)
            run(n, {&x, &scale}, {out(y), out(inverse)});
        else
            run(n, {&x, &scale, &shift}, {out(y), out(mean), out(inverse)});
        expect_near(y.read(), naive(n, xs, scale.read(), shift.read()), 1e-5F);
        const Statistics s = statistics(n, xs);
        expect_near(inverse.read(), Values(s.inverse.begin(), s.inverse.end()), 1e-5F);

        n.pass = Pass::backward_data;
        Tensor& dy = tensor(t.shape, gradient, t.order);
        Tensor& dx = tensor(t.shape, {}, t.order);
        Tensor& dscale = tensor({n.features});
        Tensor& dshift = tensor({n.features});
        const Access sum = Access::accumulate_micro_batches;
        if (is_rms)
            run(n, {&dy, &x, &scale, &inverse}, {out(dx), out(dscale, sum)});
        else
            run(n, {&dy, &x, &scale, &mean, &inverse}, {out(dx), out(dscale, sum), out(dshift, sum)});
        expect_near(
            dx.read(),
            numeric_gradient(xs, gradient, [&](const Values& v) { return naive(n, v, scale.read(), shift.read()); }),
            3e-3F);
        expect_near(
            dscale.read(),
            numeric_gradient(scale.read(), gradient, [&](const Values& v) { return naive(n, xs, v, shift.read()); }),
            1e-3F);
        if (!is_rms)
            expect_near(dshift.read(),
                        numeric_gradient(shift.read(), gradient,
                                         [&](const Values& v) { return naive(n, xs, scale.read(), v); }),
                        1e-3F);
    }
}

TEST_F(Norm, batch_norm_moves_running_statistics_a_tenth_towards_the_batch) {
    // x = 1, 3: mean 2, unbiased variance 2. running mean 0.9 0 + 0.1 2 = 0.2, variance 0.9 1 + 0.1 2 = 1.1.
    Tensor& x = tensor({2, 1, 1, 1}, {1, 3});
    Tensor& scale = tensor({1}, {1});
    Tensor& shift = tensor({1}, {0});
    Tensor& y = tensor({2, 1, 1, 1});
    Tensor& mean = tensor({1});
    Tensor& inverse = tensor({1});
    Tensor& running_mean = tensor({1}, {0});
    Tensor& running_variance = tensor({1}, {1});
    run(step::Norm{Kind::batch, 2, 1, 1}, {&x, &scale, &shift},
        {out(y), out(mean), out(inverse), out(running_mean, Access::update), out(running_variance, Access::update)});
    expect_near(running_mean.read(), {0.2F}, 1e-6F);
    expect_near(running_variance.read(), {1.1F}, 1e-6F);
}

TEST_F(Norm, layer_norm_works_on_bf16_rows) {
    const step::Norm n{Kind::layer, 4, 32, 1};
    Tensor& x = tensor({4, 32}, normal_values(128, 1), Order::row_major, DType::bf16);
    Tensor& scale = tensor({32}, normal_values(32, 2), Order::row_major, DType::bf16);
    Tensor& shift = tensor({32}, normal_values(32, 3), Order::row_major, DType::bf16);
    Tensor& y = tensor({4, 32}, {}, Order::row_major, DType::bf16);
    Tensor& mean = tensor({4});
    Tensor& inverse = tensor({4});
    run(n, {&x, &scale, &shift}, {out(y), out(mean), out(inverse)});
    expect_near(y.read(), naive(n, x.read(), scale.read(), shift.read()), 4e-3F);  // bf16 rounds to 2^-9
}

}  // namespace
}  // namespace lockstep::cpu::testing
