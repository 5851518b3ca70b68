// What needs a place of its own in the arena: a copy of a storage, or each of the lives that it has in a step.
#pragma once

#include <cstdint>
#include <vector>

#include "step/arena_packing.hpp"
#include "step/graph.hpp"
#include "step/life.hpp"

namespace lockstep::step {

/// When a copy may be at another place than before. From one life to the next it holds nothing, so that an op that
/// begins a life may find it anywhere; but each op is told once where its operands are, or once per micro-batch.
enum class Freedom {
    none,   ///< all lives of a copy are at one place
    by_op,  ///< an op finds it at one place in all micro-batches, unless another of its operands has several copies
    by_instance  ///< an op finds it at another place in each micro-batch
};

struct Stays {
    /// An op finds a copy in a stay.
    struct Visit {
        TensorId storage;
        std::int32_t op = 0;            ///< number
        std::int32_t micro_batch = -1;  ///< of the operand; -1: in all
        std::int32_t slot = 0;
        std::size_t stay = 0;
    };
    /// Where a copy is when a step ends.
    struct Last {
        TensorId storage;
        std::int32_t slot = 0;
        std::size_t stay = 0;
    };
    std::vector<Tenant> tenants;  ///< by stay
    std::vector<Last> last;       ///< of each copy that is used
    std::vector<Visit> visits;    ///< by storage, op and micro-batch; none when a copy has one place
};

/// Of all storages that are not carried. Lives that go on from one step into the next, and those in which one op finds
/// a copy that it must find at one place, are one stay.
Stays find_stays(const StepGraph& graph, const RankClass& rank_class, const Lives& lives, Freedom freedom);

}  // namespace lockstep::step
