#include "step/liveness.hpp"

#include <algorithm>
#include <array>
#include <numeric>

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

/// A storage that has its place.
struct Placed {
    std::int64_t offset = 0, end = 0;
    const Life* life = nullptr;
};

/// The lowest offset at which `bytes` are free while `life` lasts; `placed` is sorted by offset.
std::int64_t first_fit(const std::vector<Placed>& placed, const Life& life, std::int64_t bytes) {
    std::int64_t offset = 0;
    for (const Placed& other : placed) {
        if (other.end <= offset || !overlap(*other.life, life)) continue;
        if (other.offset >= offset + bytes) break;
        offset = other.end;
    }
    return offset;
}

void place_shared(const StepGraph& graph, const std::vector<Life>& lives, std::vector<std::size_t> tensors,
                  MemoryPlan& plan) {
    std::stable_sort(tensors.begin(), tensors.end(), [&](std::size_t a, std::size_t b) {
        return storage_bytes(graph.tensors[a]) > storage_bytes(graph.tensors[b]);
    });
    const std::int64_t base = plan.arena_bytes;
    std::vector<Placed> placed;
    placed.reserve(tensors.size());
    for (const std::size_t i : tensors) {
        const std::int64_t bytes = storage_bytes(graph.tensors[i]);
        const std::int64_t offset = first_fit(placed, lives[i], bytes);
        plan.offset[i] = base + offset;
        plan.arena_bytes = std::max(plan.arena_bytes, base + offset + bytes);
        const Placed mine{offset, offset + bytes, &lives[i]};
        placed.insert(std::upper_bound(placed.begin(), placed.end(), mine,
                                       [](const Placed& x, const Placed& y) { return x.offset < y.offset; }),
                      mine);
    }
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
    const std::vector<Life> lives = lives_of_storages(graph, found);
    MemoryPlan plan;
    find_peak(graph, found, plan);
    plan.offset.assign(graph.tensors.size(), -1);
    std::vector<std::size_t> shared;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (lives[i].intervals.empty()) continue;
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
