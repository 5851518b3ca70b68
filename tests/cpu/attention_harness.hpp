// Attention of tests: operands of the whole, and of the ranks that share it.
#pragma once

#include <optional>

#include "cpu/kernel_harness.hpp"

namespace lockstep::cpu::testing {

/// seq, batch, heads, kv_heads, head_dim.
inline step::Attention attention(std::int64_t seq, std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                                 std::int64_t head_dim) {
    step::Attention a;
    a.seq = seq;
    a.batch = batch;
    a.heads = heads;
    a.kv_heads = kv_heads;
    a.head_dim = head_dim;
    return a;
}

class AttentionTest : public KernelTest {
protected:
    struct Result {
        Values context, dqkv;
    };
    static Shape qkv_shape(const step::Attention& a) {
        return {a.seq, a.batch, a.kv_heads, a.heads / a.kv_heads + 2, a.head_dim};
    }
    static Shape context_shape(const step::Attention& a) { return {a.seq, a.batch, a.heads, a.head_dim}; }

    /// What is kept for the backward pass.
    std::vector<Tensor*> saved_tensors(const step::Attention& a) {
        if (a.algorithm == plan::AttentionAlgorithm::flash) return {&tensor({a.batch, a.heads, a.seq})};
        const Shape scores{a.batch, a.heads, a.seq, a.seq};
        std::vector<Tensor*> saved{&tensor(scores)};
        if (a.dropout > 0) {
            saved.push_back(&tensor(scores, {}, Order::row_major, DType::uint8));
            saved.push_back(&tensor(scores));
        }
        return saved;
    }
    /// Both passes of a part (the whole, by default): `a` is of this rank, the values are those of all.
    Result both(step::Attention a, const Values& qkv_values, const Values& gradient, const Moment& moment = {},
                const std::optional<Operand>& qkv_part = {}, const std::optional<Operand>& context_part = {}) {
        const plan::Mesh one;
        const Operand qkv_place = qkv_part.value_or(part(qkv_shape(a), {}, one, 0));
        const Operand place = context_part.value_or(part(context_shape(a), {}, one, 0));
        Tensor& qkv = tensor(qkv_place, qkv_values);
        Tensor& context = tensor(place);
        const std::vector<Tensor*> saved = saved_tensors(a);
        std::vector<Output> outputs{out(context)};
        for (const Tensor* t : saved) outputs.push_back(out(*t));
        run(a, {&qkv}, outputs, moment);
        a.pass = step::Pass::backward_data;
        Tensor& dcontext = tensor(place, gradient);
        Tensor& dqkv = tensor(qkv_place, Values(static_cast<std::size_t>(qkv_place.global.elements()), 9));
        std::vector<const Tensor*> in{&dcontext, &qkv, &context};
        in.insert(in.end(), saved.begin(), saved.end());
        run(a, in, {out(dqkv)}, moment);
        return {context.read(), dqkv.read()};
    }
};

}  // namespace lockstep::cpu::testing
