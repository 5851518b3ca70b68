#include "plan/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/nearby.hpp"

namespace lockstep::plan {

namespace {

using Kind = PipelineSlot::Kind;

std::vector<PipelineSlot> all_forward_first(int micro_batches) {
    std::vector<PipelineSlot> order;
    for (int m = 0; m < micro_batches; ++m) order.push_back({Kind::forward, 0, m});
    // In the order they went forward (as PyTorch does): sums over micro-batches begin with the first.
    for (int m = 0; m < micro_batches; ++m) order.push_back({Kind::backward, 0, m});
    return order;
}

/// The n-th pass of a stage in one direction: groups of pp micro-batches go through all chunks one after the other.
PipelineSlot nth_pass(Kind kind, std::int64_t n, int pp, int vpp) {
    const std::int64_t group = std::int64_t{pp} * vpp;
    const int chunk = static_cast<int>(n % group / pp);
    const int micro_batch = static_cast<int>(n / group * pp + n % pp);
    return {kind, kind == Kind::forward ? chunk : vpp - 1 - chunk, micro_batch};
}

/// `warm_up` forward passes, then one forward and one backward in turn, then the backward passes that are left.
std::vector<PipelineSlot> one_by_one(int pp, int vpp, std::int64_t warm_up, int micro_batches) {
    const std::int64_t passes = std::int64_t{micro_batches} * vpp;
    const std::int64_t ahead = std::min(warm_up, passes);
    std::vector<PipelineSlot> order;
    order.reserve(static_cast<std::size_t>(2 * passes));
    for (std::int64_t n = 0; n < passes + ahead; ++n) {
        if (n < passes) order.push_back(nth_pass(Kind::forward, n, pp, vpp));
        if (n >= ahead) order.push_back(nth_pass(Kind::backward, n - ahead, pp, vpp));
    }
    return order;
}

}  // namespace

std::vector<PipelineSlot> pipeline_order(Schedule schedule, int pp, int vpp, int stage, int micro_batches) {
    if (pp < 1 || vpp < 1 || stage < 0 || stage >= pp || micro_batches < 1)
        throw LogicError(
            fmt::format("stage {} of pp {} with vpp {} and {} micro-batches", stage, pp, vpp, micro_batches));
    if (schedule != Schedule::interleaved && vpp != 1)
        throw LogicError(fmt::format("{} with {} chunks a stage", to_string(schedule), vpp));
    switch (schedule) {
        case Schedule::gpipe: return all_forward_first(micro_batches);
        case Schedule::one_forward_one_backward: return one_by_one(1, 1, pp - 1 - stage, micro_batches);
        case Schedule::interleaved:
            if (micro_batches % pp != 0)
                throw InputError(
                    fmt::format("{} micro-batches are not a multiple of pp={} (the interleaved schedule "
                                "takes them in groups of pp); use {}",
                                micro_batches, pp, nearest_multiples(micro_batches, pp, max_accumulation)));
            return one_by_one(pp, vpp, std::int64_t{pp - stage - 1} * 2 + std::int64_t{vpp - 1} * pp, micro_batches);
    }
    throw LogicError("a schedule without an order");
}

int most_in_flight(const std::vector<PipelineSlot>& order, int chunk) {
    int now = 0, most = 0;
    for (const PipelineSlot& slot : order) {
        if (slot.chunk != chunk) continue;
        now += slot.kind == Kind::forward ? 1 : -1;
        most = std::max(most, now);
    }
    return most;
}

}  // namespace lockstep::plan
