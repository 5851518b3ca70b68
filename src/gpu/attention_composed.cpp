#include "gpu/attention_composed.hpp"

namespace lockstep::gpu {

ComposedAttention::ComposedAttention(const step::Attention& attention, MathType math_type, const Operand& context,
                                     const Operand& keys, const KernelSetup& setup, std::int64_t most_bytes)
    : op(attention),
      math(math_type),
      seed(setup.seed),
      blas(setup.blas),
      place(place_attention(attention, context, keys)),
      queries(context.runs[0]),
      dtype(context.dtype),
      tile_bytes(most_bytes) {}

HeadMatrices ComposedAttention::queries_in(const Operand& qkv) const {
    const std::int64_t d = op.head_dim, group = (place.heads + 2) * d;
    return {static_cast<std::byte*>(qkv.data), dtype, place.groups * group, d, group};
}
HeadMatrices ComposedAttention::keys_in(const Operand& keys) const {
    const std::int64_t d = op.head_dim, group = (is_ring() ? 2 : place.heads + 2) * d;
    std::byte* first = static_cast<std::byte*>(keys.data) + (is_ring() ? 0 : place.heads * d * element());
    return {first, dtype, place.groups * group, 0, group};
}
HeadMatrices ComposedAttention::values_in(const Operand& keys) const {
    HeadMatrices values = keys_in(keys);
    values.data += op.head_dim * element();
    return values;
}
HeadMatrices ComposedAttention::in_context(const Operand& context) const {
    const std::int64_t d = op.head_dim;
    return {static_cast<std::byte*>(context.data), dtype, place.groups * place.heads * d, d, place.heads * d};
}
HeadMatrices ComposedAttention::kept(void* data) const {
    const std::int64_t head = place.seq * place.keys;
    return {static_cast<std::byte*>(data), dtype, place.keys, head, place.heads * head};
}
HeadMatrices ComposedAttention::tile(const AttentionTile& t, DType type) const {
    return {nullptr, type, t.row, t.queries * t.row, place.heads * t.queries * t.row};
}

std::vector<AttentionChunk> ComposedAttention::plan(std::int64_t score_bytes) const {
    return plan_tiles(place, queries, score_bytes, tile_bytes);
}

std::unique_ptr<Kernel> make_composed_attention(const step::Attention& op, MathType math, const Operands& o,
                                                const KernelSetup& setup, std::int64_t tile_bytes) {
    const std::size_t ring = op.part == step::Attention::Part::ring ? 1 : 0;
    if (op.pass == step::Pass::forward)
        return make_composed_forward({op, math, o.out[0], o.in[ring], setup, tile_bytes}, o);
    return make_composed_backward({op, math, o.in[2 + ring], o.in[1 + ring], setup, tile_bytes}, o);
}

}  // namespace lockstep::gpu
