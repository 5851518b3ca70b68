// Pooling against plain loops, in every order of image and result.
#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using Kind = model::Pool::Kind;
using step::Pass;

/// y and, for each y, the x it came from (max).
struct Pooled {
    Values y;
    std::vector<std::int64_t> from;
};
Pooled naive(const step::Pool& p, const Values& x) {
    Pooled pooled;
    for (std::int64_t plane = 0; plane < p.n * p.channels; ++plane)
        for (std::int64_t i = 0; i < p.out_height(); ++i)
            for (std::int64_t j = 0; j < p.out_width(); ++j) {
                float sum = 0, best = -1e30F;
                std::int64_t from = -1;
                for (std::int64_t r = i * p.stride - p.padding; r < i * p.stride - p.padding + p.kernel; ++r)
                    for (std::int64_t s = j * p.stride - p.padding; s < j * p.stride - p.padding + p.kernel; ++s) {
                        if (r < 0 || r >= p.height || s < 0 || s >= p.width) continue;
                        const std::int64_t at = (plane * p.height + r) * p.width + s;
                        sum += x[at];
                        if (x[at] > best) from = at;
                        best = std::max(best, x[at]);
                    }
                pooled.y.push_back(p.kind == Kind::max ? best : sum / static_cast<float>(p.kernel * p.kernel));
                pooled.from.push_back(from);
            }
    return pooled;
}

class Pool : public KernelTest {};

TEST_F(Pool, forward_and_gradient_equal_plain_loops_in_every_order) {
    using enum Order;
    const std::vector<std::pair<Order, Order>> orders{{row_major, row_major},
                                                      {channels_last, channels_last},
                                                      {blocked8, blocked8},
                                                      {blocked8, channels_last},
                                                      {channels_last, blocked8}};
    for (const Kind kind : {Kind::max, Kind::average})
        for (const auto& [in, result] : orders)
            for (step::Pool p : {step::Pool{kind, 2, 16, 7, 6, 3, 2, 1}, step::Pool{kind, 2, 8, 4, 4, 4, 4, 0}}) {
                const Shape image{p.n, p.channels, p.height, p.width},
                    pooled{p.n, p.channels, p.out_height(), p.out_width()};
                Tensor& x = tensor(image, normal_values(image.elements(), 1), in);
                Tensor& y = tensor(pooled, {}, result);
                Tensor& indices = tensor(pooled, {}, result, DType::int32);
                run(p, {&x}, {out(y), out(indices)});
                const Pooled expected = naive(p, x.read());
                expect_near(y.read(), expected.y, 1e-6F);

                p.pass = Pass::backward_data;
                Tensor& dy = tensor(pooled, normal_values(pooled.elements(), 2), result);
                Tensor& dx = tensor(image, normal_values(image.elements(), 3), in);
                run(p, {&dy, &indices}, {out(dx)});
                Values gradient(static_cast<std::size_t>(image.elements()));
                if (kind == Kind::max)
                    for (std::size_t i = 0; i < expected.from.size(); ++i) gradient[expected.from[i]] += dy.read()[i];
                else
                    gradient = numeric_gradient(x.read(), dy.read(), [&](const Values& v) { return naive(p, v).y; });
                expect_near(dx.read(), gradient, kind == Kind::max ? 1e-6F : 1e-3F);
            }
}

}  // namespace
}  // namespace lockstep::cpu::testing
