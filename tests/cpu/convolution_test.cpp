// Convolutions against seven loops, in every order of activations and weights.
#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using step::Access;
using step::Pass;

/// Calls f(x index, w index, y index) for each multiply-add, all row-major.
template <class F>
void for_each_product(const step::Convolution& c, F f) {
    const std::int64_t in = c.in_channels / c.groups, out = c.out_channels / c.groups;
    for (std::int64_t n = 0; n < c.n; ++n)
        for (std::int64_t o = 0; o < c.out_channels; ++o)
            for (std::int64_t p = 0; p < c.out_height(); ++p)
                for (std::int64_t q = 0; q < c.out_width(); ++q)
                    for (std::int64_t i = 0; i < in; ++i)
                        for (std::int64_t r = 0; r < c.kernel; ++r)
                            for (std::int64_t s = 0; s < c.width_of_kernel(); ++s) {
                                const std::int64_t row = p * c.stride + r - c.padding,
                                                   column = q * c.stride + s - c.horizontal_padding();
                                if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
                                const std::int64_t channel = o / out * in + i;
                                f(((n * c.in_channels + channel) * c.height + row) * c.width + column,
                                  ((o * in + i) * c.kernel + r) * c.width_of_kernel() + s,
                                  ((n * c.out_channels + o) * c.out_height() + p) * c.out_width() + q);
                            }
}

struct Case {
    step::Convolution convolution;
    Order in, out;
};

class Convolution : public KernelTest {
protected:
    static Shape x_shape(const step::Convolution& c) { return {c.n, c.in_channels, c.height, c.width}; }
    static Shape y_shape(const step::Convolution& c) { return {c.n, c.out_channels, c.out_height(), c.out_width()}; }
    static Shape w_shape(const step::Convolution& c) {
        return {c.out_channels, c.in_channels / c.groups, c.kernel, c.width_of_kernel()};
    }
    static std::vector<Case> cases() {
        const step::Convolution three{2, 16, 7, 5, 24, 3, 1, 1}, strided{2, 8, 9, 9, 16, 3, 2, 1},
            one{3, 16, 4, 4, 8, 1}, first{2, 3, 12, 12, 8, 7, 2, 3}, odd{1, 5, 6, 6, 10, 3, 1, 0},
            grouped{2, 16, 5, 5, 32, 3, 1, 1, 2};
        step::Convolution wide{2, 8, 6, 9, 16, 1, 1, 0}, high{2, 8, 9, 6, 16, 7, 1, 3};
        wide.kernel_width = 7, wide.padding_width = 3;
        high.kernel_width = 1;
        using enum Order;
        return {{three, channels_last, channels_last}, {three, blocked8, blocked8},   {three, row_major, row_major},
                {strided, blocked8, channels_last},    {one, blocked8, blocked8},     {first, channels_last, blocked8},
                {odd, channels_last, channels_last},   {grouped, blocked8, blocked8}, {grouped, row_major, row_major},
                {wide, channels_last, channels_last},  {wide, blocked8, blocked8},    {high, blocked8, blocked8}};
    }
};

TEST_F(Convolution, forward_equals_seven_loops) {
    for (const Case& t : cases()) {
        const step::Convolution& c = t.convolution;
        Tensor& x = tensor(x_shape(c), normal_values(x_shape(c).elements(), 1), t.in);
        Tensor& w = tensor(w_shape(c), normal_values(w_shape(c).elements(), 2));
        Tensor& bias = tensor({c.out_channels}, normal_values(c.out_channels, 3));
        Tensor& y = tensor(y_shape(c), {}, t.out);
        run(c, {&x, &w, &bias}, {out(y)});
        Values expected(static_cast<std::size_t>(y_shape(c).elements()));
        const std::int64_t pixels = c.out_height() * c.out_width();
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = bias.read()[static_cast<std::int64_t>(i) / pixels % c.out_channels];
        const Values xs = x.read(), ws = w.read();
        for_each_product(c, [&](auto i, auto j, auto k) { expected[k] += xs[i] * ws[j]; });
        expect_near(y.read(), expected, 2e-5F);
    }
}

TEST_F(Convolution, backward_data_is_the_transpose_of_forward) {
    for (Case t : cases()) {
        step::Convolution& c = t.convolution;
        c.pass = Pass::backward_data;
        Tensor& dy = tensor(y_shape(c), normal_values(y_shape(c).elements(), 1), t.out);
        Tensor& w = tensor(w_shape(c), normal_values(w_shape(c).elements(), 2));
        Tensor& dx = tensor(x_shape(c), {}, t.in);
        run(c, {&dy, &w}, {out(dx)});
        Values expected(static_cast<std::size_t>(x_shape(c).elements()));
        const Values g = dy.read(), ws = w.read();
        for_each_product(c, [&](auto i, auto j, auto k) { expected[i] += g[k] * ws[j]; });
        expect_near(dx.read(), expected, 2e-5F);
    }
}

TEST_F(Convolution, backward_weights_accumulates_weights_and_bias) {
    for (Case t : cases()) {
        step::Convolution& c = t.convolution;
        c.pass = Pass::backward_weights;
        Tensor& dy = tensor(y_shape(c), normal_values(y_shape(c).elements(), 1), t.out);
        Tensor& x = tensor(x_shape(c), normal_values(x_shape(c).elements(), 2), t.in);
        Tensor& dw = tensor(w_shape(c), normal_values(w_shape(c).elements(), 3));
        Tensor& dbias = tensor({c.out_channels}, normal_values(c.out_channels, 4));
        const auto kernel = make(
            c, {&dy, &x}, {out(dw, Access::accumulate_micro_batches), out(dbias, Access::accumulate_micro_batches)});
        for (const int passes : {1, 2}) {
            for (int m = 0; m < passes; ++m) kernel->run({0, m});
            Values expected(static_cast<std::size_t>(w_shape(c).elements())),
                bias(static_cast<std::size_t>(c.out_channels));
            const Values g = dy.read(), xs = x.read();
            for_each_product(c,
                             [&](auto i, auto j, auto k) { expected[j] += static_cast<float>(passes) * g[k] * xs[i]; });
            const std::int64_t pixels = c.out_height() * c.out_width();
            for (std::size_t k = 0; k < g.size(); ++k)
                bias[static_cast<std::int64_t>(k) / pixels % c.out_channels] += static_cast<float>(passes) * g[k];
            expect_near(dw.read(), expected, 1e-4F);
            expect_near(dbias.read(), bias, 1e-4F);
        }
    }
}

TEST_F(Convolution, packed_weights_and_reorders_give_what_plain_weights_give) {
    for (const std::int64_t channels : {16, 5}) {  // the second needs padding, so that its packed order is plain
        const step::Convolution c{2, channels, 8, 8, 16, 3, 1, 1};
        const Order order = channels == 16 ? Order::blocked8 : Order::channels_last;
        Tensor& x = tensor(x_shape(c), normal_values(x_shape(c).elements(), 1), order);
        Tensor& w = tensor(w_shape(c), normal_values(w_shape(c).elements(), 2));
        Tensor& packed = tensor(w_shape(c), {}, Order::packed);
        Tensor& y = tensor(y_shape(c), {}, Order::blocked8);
        Tensor& y_plain = tensor(y_shape(c), {}, Order::blocked8);
        const auto convolve = make(c, {&x, &packed}, {out(y)});
        run(step::Reorder{w_shape(c).elements(), c}, {&w}, {out(packed)});
        convolve->run({});
        run(c, {&x, &w}, {out(y_plain)});
        expect_near(y.read(), y_plain.read(), 1e-6F);

        step::Convolution backward = c;
        backward.pass = Pass::backward_weights;
        Tensor& packed_gradient = tensor(w_shape(c), {}, Order::packed);
        Tensor& dw = tensor(w_shape(c));
        Tensor& dw_plain = tensor(w_shape(c));
        run(backward, {&y, &x}, {out(packed_gradient)});
        const auto unpack = make(step::Reorder{w_shape(c).elements(), backward}, {&packed_gradient},
                                 {out(dw, Access::accumulate_micro_batches)});
        unpack->run({0, 0});
        run(backward, {&y, &x}, {out(dw_plain)});
        expect_near(dw.read(), dw_plain.read(), 1e-5F);
        unpack->run({0, 1});
        Values twice = dw_plain.read();
        for (float& v : twice) v *= 2;
        expect_near(dw.read(), twice, 1e-5F);
    }
}

}  // namespace
}  // namespace lockstep::cpu::testing
