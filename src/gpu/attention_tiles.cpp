#include "gpu/attention_tiles.hpp"

#include <algorithm>

#include "gpu/libraries.hpp"

namespace lockstep::gpu {
namespace {

constexpr std::int64_t causal_block = 1024;  // queries
constexpr std::int64_t row_alignment = 8;    // elements: 16 bytes of the smallest

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }
std::int64_t rounded_down(std::int64_t value, std::int64_t unit) {
    return value < unit ? std::max<std::int64_t>(value, 1) : value / unit * unit;
}

/// Whether a product runs as a batch over groups: a sum over heads has to.
bool is_over_groups(const HeadProduct::Shape& s, std::int64_t groups, std::int64_t heads) {
    return s.c.head == 0 || groups >= heads;
}

ProductOperand operand(const HeadMatrices& m, bool over_groups) {
    const auto bytes = [&](std::int64_t elements) { return static_cast<std::uint64_t>(elements * m.element()); };
    // Any head of any tile begins at a sum of these.
    const std::uint64_t begins =
        reinterpret_cast<std::uintptr_t>(m.data) | bytes(m.row) | bytes(m.head) | bytes(m.group);
    return {m.dtype, m.row, over_groups ? m.group : m.head, alignment_of(begins)};
}

ProductShape product_shape(const HeadProduct::Shape& s, std::int64_t groups, std::int64_t heads) {
    const bool over_groups = is_over_groups(s, groups, heads);
    ProductShape p{over_groups ? groups : heads, s.m, s.n, s.k, s.is_a_transposed, s.is_b_transposed};
    p.a = operand(s.a, over_groups);
    p.b = operand(s.b, over_groups);
    p.c = operand(s.c, over_groups);
    p.compute = compute_type(s.a.dtype, s.math);
    return p;
}

}  // namespace

std::vector<AttentionChunk> plan_tiles(const AttentionPlace& place, const std::vector<step::IndexRun>& queries,
                                       std::int64_t score_bytes, std::int64_t most_bytes) {
    const std::int64_t row = place.heads * rounded_up(place.keys, row_alignment) * score_bytes;  // of all heads
    std::int64_t longest = 0;
    for (const step::IndexRun& run : queries) longest = std::max(longest, run.count);
    const std::int64_t block =
        std::min(rounded_down(most_bytes / row, 16), place.is_causal ? std::min(longest, causal_block) : longest);
    const std::int64_t most_groups = std::clamp<std::int64_t>(most_bytes / (row * block), 1, place.groups);
    const std::int64_t chunks = (place.groups + most_groups - 1) / most_groups;
    const std::int64_t groups = (place.groups + chunks - 1) / chunks;

    std::vector<AttentionChunk> plan;
    for (std::int64_t first = 0; first < place.groups; first += groups) {
        AttentionChunk& chunk = plan.emplace_back();
        chunk.first_group = first;
        chunk.groups = std::min(groups, place.groups - first);
        for (const step::IndexRun& run : queries)
            for (std::int64_t q = run.local; q < run.local + run.count; q += block) {
                const std::int64_t count = std::min(block, run.local + run.count - q);
                const std::int64_t keys = place.visible(q + count - 1);
                if (keys > 0)
                    chunk.tiles.push_back({first, chunk.groups, q, count, keys, rounded_up(keys, row_alignment)});
            }
    }
    return plan;
}

HeadProduct::HeadProduct(const Shape& shape, std::int64_t groups, std::int64_t heads, BlasLt& blas)
    : product_(product_shape(shape, groups, heads), nullptr, blas) {
    const bool over_groups = is_over_groups(shape, groups, heads);
    times_ = over_groups ? heads : groups;
    const auto step = [over_groups](const HeadMatrices& m) { return (over_groups ? m.head : m.group) * m.element(); };
    a_step_ = step(shape.a);
    b_step_ = step(shape.b);
    c_step_ = step(shape.c);
}

void HeadProduct::enqueue(const std::byte* a, const std::byte* b, std::byte* c, bool adds, std::byte* workspace,
                          cudaStream_t stream) const {
    for (std::int64_t i = 0; i < times_; ++i)
        product_.enqueue(a + i * a_step_, b + i * b_step_, c + i * c_step_, adds, workspace, stream);
}

}  // namespace lockstep::gpu
