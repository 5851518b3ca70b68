// Where the elements of a rank's part are in the whole tensor: what random numbers and positions are keyed by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/shape.hpp"
#include "step/graph.hpp"

namespace lockstep::step {

/// A rank's part of a tensor: its shape, the whole's shape, and which indices along each dimension are here. What
/// travels around a ring has those of where it comes from.
struct Place {
    Shape shape;
    Shape global;
    std::vector<std::vector<IndexRun>> runs;

    std::int64_t elements() const { return shape.elements(); }
};

/// Where a rank's part of a tensor is.
Place place_of(const Tensor& tensor, const plan::Mesh& mesh, int rank);

/// Around a ring of context parallelism, the keys that have come to this rank by the op's ring step are at the
/// positions of the queries of the rank they come from: changes the place of `keys` accordingly.
void place_ring_keys(const StepGraph& graph, int rank, const OpInstance& instance, const Attention& attention,
                     Place& keys);

/// The indices of a tensor that nobody splits.
std::vector<std::vector<IndexRun>> whole_runs(const Shape& shape);

/// The global index of each local one along a dimension.
std::vector<std::int64_t> global_indices(const std::vector<IndexRun>& runs);

/// Global index along the first dimension of each `batch` of rows: the positions of tokens [seq, batch, ...]. Throws
/// LogicError when the part has not `rows` of them.
std::vector<std::int64_t> positions_of_rows(const Place& place, std::int64_t rows, std::int64_t batch);

/// Row-major indices in the whole tensor. Dimensions that are whole on this rank are joined with the next outer one, so
/// that stretches are as long as the split allows.
class GlobalPlace {
public:
    explicit GlobalPlace(const Place& part);

    std::int64_t elements() const { return elements_; }  ///< of the whole tensor
    /// Of one element, by its row-major index in this part. Divides: for a loop use for_stretches.
    std::int64_t operator()(std::int64_t local) const;

    /// f(local, global, count) for the stretches of elements begin <= local < end that are contiguous in the whole too.
    template <class F>
    void for_stretches(std::int64_t begin, std::int64_t end, F&& f) const {
        const Dimension& inner = dimensions_.back();
        for (std::int64_t row = inner.local > 0 ? begin / inner.local : 0; begin < end; ++row) {
            const std::int64_t first = row * inner.local, last = std::min(end, first + inner.local);
            const std::int64_t whole_row = row_start(row);
            for (const IndexRun& run : inner.runs) {
                const std::int64_t from = std::max(begin, first + run.local);
                const std::int64_t to = std::min(last, first + run.local + run.count);
                if (from < to) f(from, whole_row + run.global + (from - first - run.local), to - from);
            }
            begin = last;
        }
    }

private:
    struct Dimension {
        std::int64_t local = 1, global = 1;
        std::vector<IndexRun> runs;
    };
    static std::int64_t place(const Dimension& dimension, std::int64_t index);
    /// Index in the whole tensor where the row begins that holds this one.
    std::int64_t row_start(std::int64_t row) const;

    std::vector<Dimension> dimensions_;  // outermost first
    std::int64_t elements_ = 1;
};

}  // namespace lockstep::step
