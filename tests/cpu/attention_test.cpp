// Attention against plain softmax(scale q k^T) v, gradients by central differences.
#include <cmath>

#include "cpu/attention_harness.hpp"

namespace lockstep::cpu::testing {
namespace {

using plan::AttentionAlgorithm;

Values naive(const step::Attention& a, const Values& qkv) {
    const std::int64_t d = a.head_dim, sharing = a.heads / a.kv_heads;
    const auto at = [&](std::int64_t s, std::int64_t b, std::int64_t group, std::int64_t member) {
        return &qkv[(((s * a.batch + b) * a.kv_heads + group) * (sharing + 2) + member) * d];
    };
    Values context;
    for (std::int64_t q = 0; q < a.seq; ++q)
        for (std::int64_t b = 0; b < a.batch; ++b)
            for (std::int64_t h = 0; h < a.heads; ++h) {
                const std::int64_t group = h / sharing, keys = a.causal ? q + 1 : a.seq;
                std::vector<double> p(static_cast<std::size_t>(keys));
                double sum = 0;
                for (std::int64_t k = 0; k < keys; ++k) {
                    double score = 0;
                    for (std::int64_t i = 0; i < d; ++i)
                        score += static_cast<double>(at(q, b, group, h % sharing)[i]) * at(k, b, group, sharing)[i];
                    sum += p[k] = std::exp(score / std::sqrt(static_cast<double>(d)));
                }
                for (std::int64_t i = 0; i < d; ++i) {
                    double value = 0;
                    for (std::int64_t k = 0; k < keys; ++k) value += p[k] / sum * at(k, b, group, sharing + 1)[i];
                    context.push_back(static_cast<float>(value));
                }
            }
    return context;
}

class Attention : public AttentionTest {};

TEST_F(Attention, forward_equals_plain_softmax_over_several_blocks_of_queries) {
    for (const bool causal : {false, true})
        for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
            step::Attention a = attention(150, 2, 4, 2, 8);
            a.causal = causal;
            a.algorithm = algorithm;
            const Values qkv = normal_values(qkv_shape(a).elements(), 1);
            const Values gradient = normal_values(context_shape(a).elements(), 2);
            expect_near(both(a, qkv, gradient).context, naive(a, qkv), 1e-5F);
        }
}

TEST_F(Attention, gradients_equal_central_differences_with_shared_key_heads) {
    for (const bool causal : {false, true})
        for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
            step::Attention a = attention(5, 2, 4, 2, 3);
            a.causal = causal;
            a.algorithm = algorithm;
            const Values qkv = normal_values(qkv_shape(a).elements(), 1);
            const Values gradient = normal_values(context_shape(a).elements(), 2);
            const Values expected = numeric_gradient(qkv, gradient, [&](const Values& x) { return naive(a, x); });
            expect_near(both(a, qkv, gradient).dqkv, expected, 2e-3F);
        }
}

TEST_F(Attention, gradients_under_dropout_follow_the_forward_pass_of_the_same_moment) {
    for (const auto algorithm : {AttentionAlgorithm::flash, AttentionAlgorithm::unfused}) {
        step::Attention a = attention(6, 1, 2, 2, 4);
        a.causal = false;
        a.dropout = 0.4;
        a.dropout_stream = 9;
        a.algorithm = algorithm;
        const Values qkv = normal_values(qkv_shape(a).elements(), 1);
        const Values gradient = normal_values(context_shape(a).elements(), 2);
        const Moment moment{3, 1};
        Tensor& x = tensor(qkv_shape(a));
        Tensor& context = tensor(context_shape(a));
        std::vector<Output> outputs{out(context)};
        for (const Tensor* t : saved_tensors(a)) outputs.push_back(out(*t));
        const auto forward = make(a, {&x}, outputs);
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
    for (const double dropout : {0.0, 0.3}) {
        step::Attention a = attention(260, 1, 2, 1, 16);
        a.dropout = dropout;
        const Values qkv = normal_values(qkv_shape(a).elements(), 1);
        const Values gradient = normal_values(context_shape(a).elements(), 2);
        const Result flash = both(a, qkv, gradient);
        a.algorithm = AttentionAlgorithm::unfused;
        const Result unfused = both(a, qkv, gradient);
        expect_near(flash.context, unfused.context, 1e-5F);
        expect_near(flash.dqkv, unfused.dqkv, 2e-5F);
    }
}

TEST_F(Attention, unfused_keeps_probabilities_mask_and_what_dropout_makes_of_them) {
    step::Attention a = attention(7, 2, 2, 1, 4);
    a.algorithm = AttentionAlgorithm::unfused;
    a.dropout = 0.5;
    Tensor& qkv = tensor(qkv_shape(a), normal_values(qkv_shape(a).elements(), 1));
    Tensor& context = tensor(context_shape(a));
    const Shape scores{2, 2, 7, 7};
    Tensor& p = tensor(scores, Values(196, 9));
    Tensor& mask = tensor(scores, Values(196, 9), Order::row_major, DType::uint8);
    Tensor& dropped = tensor(scores, Values(196, 9));
    run(a, {&qkv}, {out(context), out(p), out(mask), out(dropped)});
    const Values values = p.read(), kept = mask.read(), after = dropped.read();
    double all_kept = 0;
    for (std::size_t row = 0; row < 28; ++row) {
        double sum = 0;
        for (std::size_t k = 0; k < 7; ++k) {
            const std::size_t i = row * 7 + k;
            sum += values[i];
            all_kept += kept[i];
            EXPECT_EQ(after[i], kept[i] != 0 ? 2 * values[i] : 0.0F);
            if (k > row % 7) { EXPECT_EQ(values[i] + kept[i] + after[i], 0.0F) << "masked"; }
        }
        EXPECT_NEAR(sum, 1, 1e-6);
    }
    EXPECT_NEAR(all_kept / 112, 0.5, 0.2);  // of 4 x 28 visible keys; four standard deviations are 0.19
}

}  // namespace
}  // namespace lockstep::cpu::testing
