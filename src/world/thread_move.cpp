// The data movement of collectives between buffers of one address space.
#include <algorithm>
#include <array>
#include <cstring>

#include "world/number.hpp"
#include "world/thread_hub.hpp"

namespace lockstep::world {
namespace {

using Source = std::span<const std::byte>;
using Target = std::span<std::byte>;

void copy(Source from, Target to) {
    if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

// Reduces bytes [begin, begin + bytes) of all inputs, in rank order, block by block in cache, and hands each block to
// `store`. A block is complete before it is stored, so that the inputs may be the outputs.
template <class Store>
void reduce_blocks(const CollectiveCall& call, const std::vector<Source>& in, std::size_t begin, std::size_t bytes,
                   Store store) {
    alignas(64) std::array<std::byte, 16384> block;
    for (std::size_t offset = 0; offset < bytes; offset += block.size()) {
        const Target sum{block.data(), std::min(block.size(), bytes - offset)};
        copy(in[0].subspan(begin + offset, sum.size()), sum);
        for (std::size_t rank = 1; rank < in.size(); ++rank)
            accumulate(sum, in[rank].subspan(begin + offset, sum.size()), call.type, call.op);
        store(offset, Source{sum});
    }
}

void all_gather(const CollectiveBuffers& b, std::size_t to) {
    std::size_t offset = 0;
    for (const auto& part : b.in) {
        copy(part, b.out[to].subspan(offset, part.size()));
        offset += part.size();
    }
}

}  // namespace

void move_collective(const CollectiveCall& call, const CollectiveBuffers& b) {
    const std::size_t ranks = b.in.size();
    using Kind = CollectiveCall::Kind;
    switch (call.kind) {
        case Kind::barrier: break;
        case Kind::broadcast:
            for (const auto& out : b.out) copy(b.in[call.root], out);
            break;
        case Kind::gather: all_gather(b, static_cast<std::size_t>(call.root)); break;
        case Kind::all_gather:
            for (std::size_t to = 0; to < ranks; ++to) all_gather(b, to);
            break;
        case Kind::all_reduce:
            reduce_blocks(call, b.in, 0, call.bytes, [&](std::size_t offset, Source block) {
                for (const auto& out : b.out) copy(block, out.subspan(offset, block.size()));
            });
            break;
        case Kind::reduce_scatter:
            for (std::size_t to = 0; to < ranks; ++to)
                reduce_blocks(
                    call, b.in, to * b.out[to].size(), b.out[to].size(),
                    [&](std::size_t offset, Source block) { copy(block, b.out[to].subspan(offset, block.size())); });
            break;
        case Kind::all_to_all: {
            const std::size_t part = call.bytes / ranks;
            for (std::size_t from = 0; from < ranks; ++from)
                for (std::size_t to = 0; to < ranks; ++to)
                    copy(b.in[from].subspan(to * part, part), b.out[to].subspan(from * part, part));
            break;
        }
    }
}

}  // namespace lockstep::world
