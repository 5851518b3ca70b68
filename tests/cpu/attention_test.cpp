// Attention against plain softmax(scale q k^T) v, gradients by central differences.
#include <cmath>

#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using plan::AttentionAlgorithm;
using step::Pass;

Values naive(const step::Attention& a, const Values& qkv) {
    const std::int64_t row = (a.heads + 2 * a.kv_heads) * a.head_dim, d = a.head_dim;
    Values context;
    for (std::int64_t b = 0; b < a.batch; ++b)
        for (std::int64_t q = 0; q < a.seq; ++q)
            for (std::int64_t h = 0; h < a.heads; ++h) {
                const std::int64_t kv = h / (a.heads / a.kv_heads), keys = a.causal ? q + 1 : a.seq;
                std::vector<double> p(static_cast<std::size_t>(keys));
                double sum = 0;
                for (std::int64_t k = 0; k < keys; ++k) {
                    double score = 0;
                    for (std::int64_t i = 0; i < d; ++i)
                        score += static_cast<double>(qkv[(b * a.seq + q) * row + h * d + i]) *
                                 qkv[(b * a.seq + k) * row + (a.heads + kv) * d + i];
                    sum += p[k] = std::exp(score / std::sqrt(static_cast<double>(d)));
                }
                for (std::int64_t i = 0; i < d; ++i) {
                    double value = 0;
                    for (std::int64_t k = 0; k < keys; ++k)
                        value += p[k] / sum * qkv[(b * a.seq + k) * row + (a.heads + a.kv_heads + kv) * d + i];
                    context.push_back(static_cast<float>(value));
                }
            }
    return context;
}

class Attention : public KernelTest {
protected:
    struct Result {
        Values context, saved, dqkv;
    };
    Result both(step::Attention a, const Values& qkv_values, const Values& gradient, const Moment& moment = {}) {
        const std::int64_t row = (a.heads + 2 * a.kv_heads) * a.head_dim, width = a.heads * a.head_dim;
        Tensor& qkv = tensor({a.batch, a.seq, row}, qkv_values);
        Tensor& context = tensor({a.batch, a.seq, width});
        Tensor& saved = a.algorithm == AttentionAlgorithm::flash ? tensor({a.batch, a.heads, a.seq})
                                                                 : tensor({a.batch, a.heads, a.seq, a.seq});
        run(a, {&qkv}, {out(context), out(saved)}, moment);
        a.pass = Pass::backward_data;
        Tensor& dcontext = tensor({a.batch, a.seq, width}, gradient);
        Tensor& dqkv = tensor({a.batch, a.seq, row});
        run(a, {&dcontext, &qkv, &context, &saved}, {out(dqkv)}, moment);
        return {context.read(), saved.read(), dqkv.read()};
    }
    static std::int64_t qkv_size(const step::Attention& a) {
        return a.batch * a.seq * (a.heads + 2 * a.kv_heads) * a.head_dim;
    }
    static std::int64_t context_size(const step::Attention& a) { return a.batch * a.seq * a.heads * a.head_dim; }
};

TEST_F(Attention, forward_equals_plain_softmax_over_several_blocks_of_queries) {
    for (const bool causal : {false, true})
        for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
            const step::Attention a{2, 150, 4, 2, 8, causal, 0, 0, algorithm};
            const Values qkv = normal_values(qkv_size(a), 1);
            expect_near(both(a, qkv, normal_values(context_size(a), 2)).context, naive(a, qkv), 1e-5F);
        }
}

TEST_F(Attention, gradients_equal_central_differences_with_shared_key_heads) {
    for (const bool causal : {false, true})
        for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
            const step::Attention a{1, 5, 4, 2, 3, causal, 0, 0, algorithm};
            const Values qkv = normal_values(qkv_size(a), 1), gradient = normal_values(context_size(a), 2);
            const Values expected = numeric_gradient(qkv, gradient, [&](const Values& x) { return naive(a, x); });
            expect_near(both(a, qkv, gradient).dqkv, expected, 2e-3F);
        }
}

TEST_F(Attention, gradients_under_dropout_follow_the_forward_pass_of_the_same_moment) {
    for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
        const step::Attention a{1, 6, 2, 2, 4, false, 0.4, 9, algorithm};
        const Values qkv = normal_values(qkv_size(a), 1), gradient = normal_values(context_size(a), 2);
        const Moment moment{3, 1};
        Tensor& x = tensor({1, 6, 24});
        Tensor& context = tensor({1, 6, 8});
        Tensor& saved = tensor({1, 2, 6, 6});
        const auto forward = make(a, {&x}, {out(context), out(saved)});
        const Values expected = numeric_gradient(qkv, gradient, [&](const Values& at) {
            x.write(at);
            forward->run(moment);
            return context.read();
        });
        expect_near(both(a, qkv, gradient, moment).dqkv, expected, 5e-3F);
        EXPECT_NE(both(a, qkv, gradient, {4, 1}).context, both(a, qkv, gradient, moment).context);
    }
}

TEST_F(Attention, flash_and_unfused_agree_over_several_blocks) {
    step::Attention a{1, 260, 2, 1, 16, true};
    const Values qkv = normal_values(qkv_size(a), 1), gradient = normal_values(context_size(a), 2);
    const Result flash = both(a, qkv, gradient);
    a.algorithm = AttentionAlgorithm::unfused;
    const Result unfused = both(a, qkv, gradient);
    expect_near(flash.context, unfused.context, 1e-5F);
    expect_near(flash.dqkv, unfused.dqkv, 2e-5F);
}

}  // namespace
}  // namespace lockstep::cpu::testing
