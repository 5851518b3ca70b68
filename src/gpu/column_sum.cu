// Sums over rows, for gradients of biases and position tables.
#include "gpu/column_sums.cuh"
#include "gpu/kernels.hpp"
#include "gpu/place.cuh"

namespace lockstep::gpu {
namespace {

template <class T>
struct Rows {
    static constexpr int count = 1;
    const T* x;
    std::int64_t columns;
    template <int M>
    __host__ __device__ void add(std::int64_t row, std::int64_t column, Pack<float, M> (&sums)[count]) const {
        const Pack<float, M> values = load_pack<M>(x, row * columns + column);
        for (int k = 0; k < M; ++k) sums[0].at[k] += values.at[k];
    }
};

template <class T>
class ColumnSumKernel final : public Kernel {
public:
    ColumnSumKernel(const step::ColumnSum& op, const Operands& o)
        : sums_({pointer<T>(o.in[0]), op.columns}, op.rows, op.columns,
                elements_before_packs<N>(pointer<T>(o.in[0])) == 0),
          y_(o.out[0]) {}
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        sums_.launch_partial(stream);
        sums_.launch_finish(0, y_, adds(y_.access, moment), stream);
    }
    std::int64_t workspace_bytes() const override { return sums_.workspace_bytes(); }
    void bind_workspace(std::byte* workspace) override { sums_.bind_workspace(workspace); }

private:
    static constexpr int N = pack_of<T>;
    ColumnSums<N, Rows<T>> sums_;
    Output y_;
};

/// A thread sums M columns of one position over the batch.
template <class T, class S>
struct SumPositions {
    static constexpr int N = pack_of<T, S>;
    const T* dy;
    S* table;
    std::int64_t batch, width, head;
    DeviceRuns positions;
    bool add;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t position, const Group& group) const {
        const std::int64_t local = positions.local(position), from = local * batch * width, to = position * width;
        if (local < 0 && add) return;
        for_packs<N>(group, RowSpan{to, width, head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> sums{};
            for (std::int64_t b = 0; b < batch && local >= 0; ++b) {
                const Pack<float, M> values = load_pack<M>(dy, from + b * width + i);
                for (int k = 0; k < M; ++k) sums.at[k] += values.at[k];
            }
            store_pack(table, to + i, sums, add);
        });
    }
};

}  // namespace

std::unique_ptr<Kernel> make_column_sum(const step::ColumnSum& op, const Operands& o) {
    expect_slots(o, 1, 1, "column_sum");
    return with_type(o.in[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
        return std::make_unique<ColumnSumKernel<decltype(type)>>(op, o);
    });
}

std::unique_ptr<Kernel> make_position_sum(const step::PositionSum& op, const Operands& o) {
    expect_slots(o, 1, 1, "position_sum");
    const DeviceRuns positions = positions_of_rows(o.in[0], op.seq * op.batch, op.batch, op.positions);
    return with_type(o.in[0].dtype, [&](auto type) {
        return with_type(o.out[0].dtype, [&](auto table_type) -> std::unique_ptr<Kernel> {
            using T = decltype(type);
            using S = decltype(table_type);
            constexpr int N = SumPositions<T, S>::N;
            SumPositions<T, S> body{
                pointer<T>(o.in[0]), pointer<S>(o.out[0]), op.batch, op.width, -1, positions, false};
            if (op.width % N == 0 && elements_before_packs<N>(body.dy, body.table) == 0) body.head = 0;
            return make_function_kernel([body, rows = op.positions, access = o.out[0].access](
                                            const Moment& moment, cudaStream_t stream) mutable {
                body.add = adds(access, moment);
                launch_rows(rows, body.width / N, body, stream);
            });
        });
    });
}

}  // namespace lockstep::gpu
