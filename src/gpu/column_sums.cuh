// Sums over the rows of a matrix, for each column, in two passes that always add in the same order: partial sums of
// chunks of rows into a workspace, then their sums.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {

/// How many chunks the rows are cut into: enough threads to keep a large GPU's memory busy, rows enough to make the
/// partial sums small beside what is read.
class ColumnChunks {
public:
    ColumnChunks() = default;
    /// `pack`: columns that a thread sums.
    ColumnChunks(std::int64_t rows, std::int64_t columns, int pack) : rows_(rows) {
        constexpr std::int64_t threads_wanted = 1 << 16, least_rows = 16;
        const std::int64_t most = (rows + least_rows - 1) / least_rows;
        const std::int64_t wanted = threads_wanted / std::max<std::int64_t>(columns / pack, 1);
        const std::int64_t chunks = std::max<std::int64_t>(std::min(wanted, most), 1);
        rows_of_chunk_ = std::max<std::int64_t>((rows + chunks - 1) / chunks, 1);
    }
    std::int64_t count() const { return std::max<std::int64_t>((rows_ + rows_of_chunk_ - 1) / rows_of_chunk_, 1); }
    __host__ __device__ std::int64_t first(std::int64_t chunk) const { return chunk * rows_of_chunk_; }
    __host__ __device__ std::int64_t last(std::int64_t chunk) const {
        const std::int64_t end = (chunk + 1) * rows_of_chunk_;
        return end < rows_ ? end : rows_;
    }

private:
    std::int64_t rows_ = 0, rows_of_chunk_ = 1;
};

/// The first pass: a thread sums M columns over one chunk. Source::add<M>(row, column, sums) adds to `count` sums of M
/// columns each. partial: [Source::count, chunks, columns].
template <int M, class Source>
struct PartialSums {
    Source source;
    ColumnChunks chunks;
    std::int64_t chunk_count, columns;
    float* partial;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t packs = columns / M, chunk = i / packs, column = (i - chunk * packs) * M;
        Pack<float, M> sums[Source::count] = {};
        for (std::int64_t row = chunks.first(chunk); row < chunks.last(chunk); ++row)
            source.template add<M>(row, column, sums);
        for (int s = 0; s < Source::count; ++s)
            store_pack(partial, (s * chunk_count + chunk) * columns + column, sums[s]);
    }
};

/// The second pass: y[column] = the sum over chunks of partial[chunk, column].
template <class S>
struct FinishSums {
    const float* partial;
    S* y;
    std::int64_t chunks, columns;
    bool add;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t column, const Group& group) const {
        float sum = 0;
        for (std::int64_t c = group.thread(); c < chunks; c += group.threads()) sum += partial[c * columns + column];
        sum = group.sum(sum);
        if (group.thread() == 0) write(y[column], sum, add);
    }
};

/// A matrix [rows, columns] whose columns are summed through a workspace. N: columns that a thread can take at once
/// where `has_packs`.
template <int N, class Source>
class ColumnSums {
public:
    ColumnSums(const Source& source, std::int64_t rows, std::int64_t columns, bool has_packs)
        : source_(source),
          columns_(columns),
          has_packs_(has_packs && columns % N == 0),
          chunks_(rows, columns, has_packs_ ? N : 1) {}
    std::int64_t workspace_bytes() const {
        return Source::count * chunks_.count() * columns_ * static_cast<std::int64_t>(sizeof(float));
    }
    void bind_workspace(std::byte* workspace) { partial_ = reinterpret_cast<float*>(workspace); }

    void launch_partial(cudaStream_t stream) const {
        if (has_packs_)
            launch_width<N>(stream);
        else
            launch_width<1>(stream);
    }
    /// After launch_partial: sum `which` of the source.
    void launch_finish(int which, const Output& y, bool add, cudaStream_t stream) const {
        const float* partial = partial_ + which * chunks_.count() * columns_;
        with_type(y.dtype, [&](auto type) {
            using S = decltype(type);
            const FinishSums<S> body{partial, pointer<S>(y), chunks_.count(), columns_, add};
            launch_rows(columns_, 1, body, stream);  // a warp each: neighbours share what they read
        });
    }

private:
    template <int M>
    void launch_width(cudaStream_t stream) const {
        const PartialSums<M, Source> body{source_, chunks_, chunks_.count(), columns_, partial_};
        launch_elements(chunks_.count() * (columns_ / M), body, stream);
    }

    Source source_;
    std::int64_t columns_;
    bool has_packs_;
    ColumnChunks chunks_;
    float* partial_ = nullptr;
};

}  // namespace lockstep::gpu
