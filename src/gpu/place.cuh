// Where the elements of a rank's part are in the whole tensor, for kernels: step::GlobalPlace as a plain value.
#pragma once

#include <cstdint>

#include "gpu/divide.cuh"
#include "gpu/kernel.hpp"
#include "step/global_place.hpp"

namespace lockstep::gpu {

/// The indices along one dimension that are on this rank: one run, or two in zigzag.
class DeviceRuns {
public:
    static constexpr int most = 2;
    DeviceRuns() = default;
    /// Throws LogicError when there are more runs than a kernel knows.
    explicit DeviceRuns(const std::vector<step::IndexRun>& runs);
    /// Of a dimension that nobody splits.
    static DeviceRuns whole(std::int64_t extent);
    /// In the whole, of a local index.
    __host__ __device__ std::int64_t global(std::int64_t local) const {
        const step::IndexRun& run = count_ > 1 && local >= runs_[1].local ? runs_[1] : runs_[0];
        return run.global + local - run.local;
    }
    __host__ __device__ int count() const { return count_; }
    /// Local indices whose global ones are `last` at most. Of ascending runs they are the first ones.
    __host__ __device__ std::int64_t up_to(std::int64_t last) const {
        std::int64_t indices = 0;
        for (int i = 0; i < count_; ++i) {
            const std::int64_t n = last + 1 - runs_[i].global;
            indices += n < 0 ? 0 : (n > runs_[i].count ? runs_[i].count : n);
        }
        return indices;
    }
    /// On this rank, of a global index; -1: another rank has it.
    __host__ __device__ std::int64_t local(std::int64_t global) const {
        for (int i = 0; i < count_; ++i)
            if (global >= runs_[i].global && global < runs_[i].global + runs_[i].count)
                return runs_[i].local + global - runs_[i].global;
        return -1;
    }

private:
    step::IndexRun runs_[most];
    int count_ = 0;
};

/// Indices along a dimension of which a rank has one block.
struct IndexBlock {
    std::int64_t first = 0, count = 0;
    /// On this rank, of a global index; -1: another rank has it.
    __host__ __device__ std::int64_t local(std::int64_t global) const {
        const std::int64_t at = global - first;
        return at >= 0 && at < count ? at : -1;
    }
};
/// Throws LogicError when there is no such dimension or it is split into several runs.
IndexBlock block_of(const step::Place& place, std::size_t dimension, const char* what);

/// The positions of tokens [seq, batch, ...] in a table of `positions` rows. Throws LogicError when the part has not
/// `rows` of them or the table is too short.
DeviceRuns positions_of_rows(const step::Place& place, std::int64_t rows, std::int64_t batch, std::int64_t positions);

/// Row-major indices in the whole tensor. Dimensions that are whole on this rank are joined with the next outer one.
class DevicePlace {
public:
    static constexpr int most_dimensions = 6;
    /// Throws LogicError for a part of more dimensions than that.
    explicit DevicePlace(const step::Place& part);

    std::int64_t elements() const { return elements_; }  ///< of the whole tensor
    /// Of one element, by its row-major index in this part.
    __host__ __device__ std::int64_t operator()(std::int64_t local) const {
        std::int64_t global = 0, stride = 1;
        for (int d = 0; d < count_ - 1; ++d) {  // innermost first
            const std::int64_t outer = local_[d].quotient(local);
            global += runs_[d].global(local_[d].remainder(local, outer)) * stride;
            stride *= global_[d];
            local = outer;
        }
        return global + runs_[count_ - 1].global(local) * stride;
    }
    /// True when any `n` elements from a multiple of n on are neighbours in the whole too.
    bool has_stretches_of(std::int64_t n) const { return stretch_ % n == 0; }

private:
    int count_ = 0;
    Divider local_[most_dimensions];
    std::int64_t global_[most_dimensions];
    DeviceRuns runs_[most_dimensions];
    std::int64_t elements_ = 1;
    std::int64_t stretch_ = 0;  // all stretches begin and end at multiples of it
};

/// Row-major index in this rank's part of the element at a position in memory.
class RowMajorIndex {
public:
    explicit RowMajorIndex(const Operand& o)
        : is_last_(o.shape.rank() == 4 && o.layout != step::Layout::row_major),
          pixels_(is_last_ ? o.shape[2] * o.shape[3] : 1),
          channels_(is_last_ ? o.shape[1] : 1) {}
    __host__ __device__ bool is_identity() const { return !is_last_; }
    __host__ __device__ std::int64_t operator()(std::int64_t stored) const {
        if (!is_last_) return stored;
        const std::int64_t rest = channels_.quotient(stored), channel = channels_.remainder(stored, rest);
        const std::int64_t image = pixels_.quotient(rest), pixel = pixels_.remainder(rest, image);
        return (image * channels_.divisor() + channel) * pixels_.divisor() + pixel;
    }

private:
    bool is_last_;
    Divider pixels_, channels_;
};

}  // namespace lockstep::gpu
