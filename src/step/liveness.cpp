#include "step/liveness.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "step/life_finder.hpp"

namespace lockstep::step {

namespace {

constexpr std::int64_t alignment = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
std::int64_t storage_bytes(const Tensor& tensor) { return tensor.slot_stride() * tensor.slots; }

enum class Category : std::size_t { parameters, gradients, optimizer, activations, workspace };
constexpr std::size_t categories = 5;

Category category_of(Role role) {
    switch (role) {
        case Role::parameter:
        case Role::master_weight:
        case Role::buffer: return Category::parameters;
        case Role::gradient:
        case Role::main_gradient:
        case Role::communication: return Category::gradients;
        case Role::optimizer_state: return Category::optimizer;
        case Role::input:
        case Role::activation:
        case Role::scalar: return Category::activations;
        case Role::workspace: return Category::workspace;
    }
    return Category::activations;
}

using ByCategory = std::array<double, categories>;

MemoryUse use_of(const ByCategory& live) {
    MemoryUse use;
    auto take = [&](Category category) { return Bytes{live[static_cast<std::size_t>(category)]}; };
    use.parameters = take(Category::parameters);
    use.gradients = take(Category::gradients);
    use.optimizer = take(Category::optimizer);
    use.activations = take(Category::activations);
    use.workspace = take(Category::workspace);
    use.total = Bytes{std::accumulate(live.begin(), live.end(), 0.0)};
    return use;
}

void find_peak(const StepGraph& graph, const Lives& lives, MemoryPlan& plan) {
    std::vector<ByCategory> change(lives.issue.size() + 1, ByCategory{});
    for (const CopyLife& copy : lives.copies) {
        const Tensor& tensor = graph.tensor(copy.tensor);
        const auto category = static_cast<std::size_t>(category_of(tensor.role));
        const double bytes = tensor.bytes().value;
        change[static_cast<std::size_t>(copy.begin)][category] += bytes;
        change[static_cast<std::size_t>(copy.end) + 1][category] -= bytes;
    }
    ByCategory live{};
    for (std::size_t position = 0; position < lives.issue.size(); ++position) {
        for (std::size_t c = 0; c < categories; ++c) live[c] += change[position][c];
        const MemoryUse use = use_of(live);
        if (plan.peak_op >= 0 && use.total <= plan.peak.total) continue;
        plan.peak = use;
        plan.peak_op = lives.issue[position];
    }
}

/// A copy of a storage that has its place.
struct Placed {
    std::int64_t offset = 0, end = 0;
    const Life* life = nullptr;
};

/// The lives of a storage's copies.
using Copies = std::vector<Life>;

std::vector<Copies> lives_by_copy(const StepGraph& graph, const Lives& lives) {
    std::vector<Copies> of(graph.tensors.size());
    for (const CopyLife& copy : lives.copies) {
        Copies& copies = of[copy.tensor.index()];
        if (copies.empty()) copies.resize(static_cast<std::size_t>(graph.tensor(copy.tensor).slots));
        copies[static_cast<std::size_t>(copy.slot)].intervals.push_back({copy.begin, copy.end});
    }
    return of;
}

/// The lowest offset at which copies `stride` apart are free while each lives; `placed` is sorted by offset.
std::int64_t first_fit(const std::vector<Placed>& placed, const Copies& copies, std::int64_t stride) {
    std::int64_t offset = 0;
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (std::size_t k = 0; k < copies.size(); ++k) {
            const std::int64_t before = static_cast<std::int64_t>(k) * stride;
            for (const Placed& other : placed) {
                if (other.offset >= offset + before + stride) break;
                if (other.end <= offset + before || !overlap(*other.life, copies[k])) continue;
                offset = other.end - before;
                has_moved = copies.size() > 1;  // a single one has met all others
            }
        }
    }
    return offset;
}

/// In which order storages get their places: what comes first fits best.
enum class PlacingOrder { largest, longest, largest_for_longest, earliest };

void sort_for_placing(const StepGraph& graph, const std::vector<Copies>& lives, PlacingOrder order,
                      std::vector<std::size_t>& tensors) {
    struct Weight {
        double first = 0, second = 0;
        auto operator<=>(const Weight&) const = default;
    };
    std::vector<Weight> weight(graph.tensors.size());
    for (const std::size_t i : tensors) {
        double length = 0, begin = std::numeric_limits<double>::infinity();
        for (const Life& life : lives[i])
            for (const Life::Interval& interval : life.intervals) {
                length += interval.end - interval.begin + 1;
                begin = std::min(begin, static_cast<double>(interval.begin));
            }
        const auto bytes = static_cast<double>(storage_bytes(graph.tensors[i]));
        switch (order) {
            // Of equal ones the longest life first: the others fit into more gaps.
            case PlacingOrder::largest: weight[i] = {bytes, length}; break;
            case PlacingOrder::longest: weight[i] = {length, bytes}; break;
            case PlacingOrder::largest_for_longest: weight[i] = {bytes * length, bytes}; break;
            case PlacingOrder::earliest: weight[i] = {-begin, bytes}; break;
        }
    }
    std::stable_sort(tensors.begin(), tensors.end(),
                     [&](std::size_t x, std::size_t y) { return weight[x] > weight[y]; });
}

/// Places in the given order; returns the bytes they take. `offset` by tensor.
std::int64_t place_in_order(const StepGraph& graph, const std::vector<Copies>& lives,
                            const std::vector<std::size_t>& tensors, std::vector<std::int64_t>& offset_of) {
    std::int64_t bytes = 0;
    std::vector<Placed> placed;
    placed.reserve(tensors.size());
    for (const std::size_t i : tensors) {
        const std::int64_t stride = graph.tensors[i].slot_stride();
        std::int64_t offset = first_fit(placed, lives[i], stride);
        offset_of[i] = offset;
        bytes = std::max(bytes, offset + storage_bytes(graph.tensors[i]));
        for (const Life& life : lives[i]) {
            const Placed mine{offset, offset + stride, &life};
            placed.insert(std::upper_bound(placed.begin(), placed.end(), mine,
                                           [](const Placed& x, const Placed& y) { return x.offset < y.offset; }),
                          mine);
            offset += stride;
        }
    }
    return bytes;
}

/// Behind what has its place already; the best of several orders, the first that is nearly as small as the peak.
void place_shared(const StepGraph& graph, const std::vector<Copies>& lives, std::vector<std::size_t> tensors,
                  MemoryPlan& plan) {
    constexpr double good_enough = 1.005;
    const std::int64_t base = plan.arena_bytes;
    std::vector<std::int64_t> offset(graph.tensors.size(), 0), best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const PlacingOrder order :
         {PlacingOrder::largest, PlacingOrder::largest_for_longest, PlacingOrder::longest, PlacingOrder::earliest}) {
        if (static_cast<double>(base) + static_cast<double>(least) <= good_enough * plan.peak.total.value) break;
        sort_for_placing(graph, lives, order, tensors);
        const std::int64_t bytes = place_in_order(graph, lives, tensors, offset);
        if (bytes >= least) continue;
        least = bytes;
        best = offset;
    }
    for (const std::size_t i : tensors) plan.offset[i] = base + best[i];
    if (!tensors.empty()) plan.arena_bytes = base + least;
}

void place_views(const StepGraph& graph, MemoryPlan& plan) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (!tensor.view || plan.offset[tensor.view->of.index()] < 0) continue;
        plan.offset[i] = plan.offset[tensor.view->of.index()] +
                         tensor.view->first_element * static_cast<std::int64_t>(size_of(tensor.dtype).value);
    }
}

}  // namespace

MemoryPlan measure_memory(const StepGraph& graph, const RankClass& rank_class) {
    MemoryPlan plan;
    find_peak(graph, LifeFinder(graph).find(rank_class), plan);
    return plan;
}

std::vector<MemoryPlan> measure_memory(const StepGraph& graph) {
    LifeFinder finder(graph);
    std::vector<MemoryPlan> plans(graph.classes.size());
    for (std::size_t c = 0; c < plans.size(); ++c) find_peak(graph, finder.find(graph.classes[c]), plans[c]);
    return plans;
}

MemoryPlan plan_memory(const StepGraph& graph, const RankClass& rank_class) {
    const Lives found = LifeFinder(graph).find(rank_class);
    const std::vector<Copies> lives = lives_by_copy(graph, found);
    MemoryPlan plan;
    find_peak(graph, found, plan);
    plan.offset.assign(graph.tensors.size(), -1);
    std::vector<std::size_t> shared;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (lives[i].empty()) continue;
        if (graph.tensors[i].lifetime != Lifetime::carried) {
            shared.push_back(i);
            continue;
        }
        plan.offset[i] = plan.arena_bytes;
        plan.arena_bytes += aligned(storage_bytes(graph.tensors[i]));
    }
    place_shared(graph, lives, std::move(shared), plan);
    place_views(graph, plan);
    return plan;
}

}  // namespace lockstep::step
