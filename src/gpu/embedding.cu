// Look-up of table rows by id and the dense gradient of the table; the first token of each sequence.
//
// The gradient adds in the order of tokens, as a CPU does, so that it is the same in every run: the tokens of each row
// of the table are listed (counted, given a place, filled in and sorted), then a group of threads sums each row. A row
// is read and written once, those without tokens are cleared on the way.
#include <cuda/atomic>

#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"
#include "gpu/place.cuh"

namespace lockstep::gpu {
namespace {

IndexBlock rows_of_table(const Operand& table) {
    if (table.shape.rank() != 2 || table.shape[1] != table.global[1])
        throw LogicError("an embedding table must be a matrix that is split into blocks of rows, if at all");
    return block_of(table, 0, "an embedding table");
}

template <class Bits>
struct LookUp {
    static constexpr int N = pack_of<Bits>;
    const std::int32_t* ids;
    const Bits* table;
    Bits* y;
    IndexBlock rows;
    std::int64_t hidden, head;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t token, const Group& group) const {
        const std::int64_t row = rows.local(ids[token]), to = token * hidden;
        for_packs<N>(group, RowSpan{to, hidden, head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<Bits, M> values{};
            if (row >= 0) values = raw_pack<M>(table, row * hidden + i);
            store_raw(y, to + i, values);
        });
    }
};

std::unique_ptr<Kernel> make_look_up(const step::Embedding& op, const Operands& o) {
    if (o.out[0].dtype != o.in[1].dtype) throw LogicError("an embedding must have the dtype of its table");
    return with_bits(o.in[1].dtype, [&](auto bits) -> std::unique_ptr<Kernel> {
        using Bits = decltype(bits);
        constexpr int N = LookUp<Bits>::N;
        LookUp<Bits> body{integers(o.in[0]),      pointer<Bits>(o.in[1]), pointer<Bits>(o.out[0]),
                          rows_of_table(o.in[1]), o.in[1].shape[1],       -1};
        if (body.hidden % N == 0 && elements_before_packs<N>(body.table, body.y) == 0) body.head = 0;
        return make_function_kernel([body, tokens = op.tokens](const Moment&, cudaStream_t stream) {
            launch_rows(tokens, body.hidden / N, body, stream);
        });
    });
}

__host__ __device__ inline std::int32_t fetch_add(std::int32_t& target, std::int32_t value) {
    return cuda::atomic_ref<std::int32_t, cuda::thread_scope_device>(target).fetch_add(value,
                                                                                       cuda::memory_order_relaxed);
}

/// Which tokens each row of the table has: `count` of them, which end before `end` in a list of all.
struct TokensOfRows {
    std::int32_t *used, *count;  ///< places taken in the list; follows: count of each row
    std::int32_t *end, *tokens, *sorted;
};
struct CountTokens {
    const std::int32_t* ids;
    IndexBlock rows;
    TokensOfRows of;
    __host__ __device__ void operator()(std::int64_t token) const {
        const std::int64_t row = rows.local(ids[token]);
        if (row >= 0) fetch_add(of.count[row], 1);
    }
};
/// Rows come one behind the other in any order. end[row]: where its first token goes.
struct PlaceRows {
    TokensOfRows of;
    __host__ __device__ void operator()(std::int64_t row) const {
        of.end[row] = of.count[row] > 0 ? fetch_add(*of.used, of.count[row]) : 0;
    }
};
struct ListTokens {
    const std::int32_t* ids;
    IndexBlock rows;
    TokensOfRows of;
    __host__ __device__ void operator()(std::int64_t token) const {
        const std::int64_t row = rows.local(ids[token]);
        if (row >= 0) of.tokens[fetch_add(of.end[row], 1)] = static_cast<std::int32_t>(token);
    }
};
template <class T, class G>
struct SumTokens {
    static constexpr int N = pack_of<T, G>;
    const T* dy;
    G* table;
    std::int64_t hidden, head;
    TokensOfRows of;
    bool add;

    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const std::int32_t count = of.count[row], begin = of.end[row] - count;
        if (count == 0 && add) return;
        const std::int32_t* const tokens = count > 1 ? of.sorted + begin : of.tokens + begin;
        if (count > 1) {
            sort(of.tokens + begin, of.sorted + begin, count, group);
            group.barrier();
        }
        const std::int64_t to = row * hidden;
        for_packs<N>(group, RowSpan{to, hidden, head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> sums{};
            if (add) sums = load_pack<M>(table, to + i);
            for (std::int32_t t = 0; t < count; ++t) {
                const Pack<float, M> values = load_pack<M>(dy, tokens[t] * hidden + i);
                for (int k = 0; k < M; ++k) sums.at[k] += values.at[k];
            }
            store_pack(table, to + i, sums);
        });
    }
    /// Each to the place of its rank.
    template <class Group>
    __host__ __device__ static void sort(const std::int32_t* from, std::int32_t* to, std::int32_t count,
                                         const Group& group) {
        for (std::int32_t i = group.thread(); i < count; i += group.threads()) {
            std::int32_t rank = 0;
            for (std::int32_t j = 0; j < count; ++j) rank += from[j] < from[i] ? 1 : 0;
            to[rank] = from[i];
        }
    }
};

template <class T, class G>
class GradientKernel final : public Kernel {
public:
    GradientKernel(const step::Embedding& op, const Operands& o)
        : ids_(integers(o.in[1])),
          tokens_(op.tokens),
          rows_(rows_of_table(o.out[0])),
          access_(o.out[0].access),
          body_{pointer<T>(o.in[0]), pointer<G>(o.out[0]), o.out[0].shape[1], -1, {}, false} {
        if (body_.hidden % N == 0 && elements_before_packs<N>(body_.dy, body_.table) == 0) body_.head = 0;
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        body_.add = adds(access_, moment);
        const auto cleared = static_cast<std::size_t>(1 + rows_.count) * sizeof(std::int32_t);
        check_cuda(cudaMemsetAsync(body_.of.used, 0, cleared, stream), "cudaMemsetAsync");
        launch_elements(tokens_, CountTokens{ids_, rows_, body_.of}, stream);
        launch_elements(rows_.count, PlaceRows{body_.of}, stream);
        launch_elements(tokens_, ListTokens{ids_, rows_, body_.of}, stream);
        launch_rows(rows_.count, body_.hidden / N, body_, stream);
    }
    std::int64_t workspace_bytes() const override {
        return (1 + 2 * rows_.count + 2 * tokens_) * static_cast<std::int64_t>(sizeof(std::int32_t));
    }
    void bind_workspace(std::byte* workspace) override {
        auto* const words = reinterpret_cast<std::int32_t*>(workspace);
        std::int32_t* const end = words + 1 + rows_.count;
        body_.of = {words, words + 1, end, end + rows_.count, end + rows_.count + tokens_};
    }

private:
    static constexpr int N = SumTokens<T, G>::N;
    const std::int32_t* ids_;
    std::int64_t tokens_;
    IndexBlock rows_;
    step::Access access_;
    SumTokens<T, G> body_;
};

}  // namespace

std::unique_ptr<Kernel> make_embedding(const step::Embedding& op, const Operands& o) {
    expect_slots(o, 2, 1, "embedding");
    if (op.pass == step::Pass::forward) return make_look_up(op, o);
    return with_type(o.in[0].dtype, [&](auto type) {
        return with_type(o.out[0].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            return std::make_unique<GradientKernel<decltype(type), decltype(table_type)>>(op, o);
        });
    });
}

std::unique_ptr<Kernel> make_first_token(const step::FirstToken& op, const Operands& o) {
    expect_slots(o, 1, 1, "first_token");
    const bool is_forward = op.pass == step::Pass::forward;
    if (can_add(o.out[0].access) || o.in[0].dtype != o.out[0].dtype)
        throw LogicError("first_token only moves elements: it can't cast or add");
    const Operand& sequence = is_forward ? o.in[0] : o.out[0];
    if (sequence.runs.empty() || sequence.runs[0].empty() || sequence.runs[0][0].global != 0)
        throw LogicError("first_token of a part of the sequences that begins later");
    const auto first =
        static_cast<std::size_t>(op.batch * op.width) * static_cast<std::size_t>(size_of(o.in[0].dtype).value);
    const std::size_t rest = is_forward ? 0 : first * static_cast<std::size_t>(op.seq - 1);
    return make_function_kernel(
        [=, from = o.in[0].data, to = pointer<std::byte>(o.out[0])](const Moment&, cudaStream_t stream) {
            check_cuda(cudaMemcpyAsync(to, from, first, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
            if (rest > 0) check_cuda(cudaMemsetAsync(to + first, 0, rest, stream), "cudaMemsetAsync");
        });
}

}  // namespace lockstep::gpu
