#include "step/liveness.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "step/life_finder.hpp"
#include "step/stays.hpp"

namespace lockstep::step {

namespace {

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

bool comes_before(const MemoryPlan::Elsewhere& x, const MemoryPlan::Elsewhere& y) {
    return std::tie(x.op, x.storage, x.micro_batch) < std::tie(y.op, y.storage, y.micro_batch);
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

std::vector<std::int64_t>& copies_of(const StepGraph& graph, TensorId storage, MemoryPlan& plan) {
    auto& copies = plan.offset[storage.index()];
    copies.resize(static_cast<std::size_t>(graph.tensor(storage).slots), -1);
    return copies;
}

void place_carried(const StepGraph& graph, const Lives& lives, MemoryPlan& plan) {
    for (const CopyLife& life : lives.copies) {
        const Tensor& tensor = graph.tensor(life.tensor);
        if (tensor.lifetime != Lifetime::carried) continue;
        copies_of(graph, life.tensor, plan)[static_cast<std::size_t>(life.slot)] = plan.arena_bytes;
        plan.arena_bytes += tensor.copy_bytes();
    }
}

/// Behind what has its place already. What an op must be told more often is tried last.
void place_shared(const StepGraph& graph, const RankClass& rank_class, const Lives& lives, MemoryPlan& plan) {
    constexpr double good_enough = 1.005;
    const std::int64_t base = plan.arena_bytes;
    const std::int64_t enough = static_cast<std::int64_t>(good_enough * plan.peak.total.value) - base;
    Stays stays;
    Packing packing;
    for (const Freedom freedom : {Freedom::none, Freedom::by_op, Freedom::by_instance}) {
        Stays tried = find_stays(graph, rank_class, lives, freedom);
        Packing packed = freedom == Freedom::none ? pack(tried.tenants, enough, 0) : pack(tried.tenants, enough);
        if (freedom != Freedom::none && packed.bytes >= packing.bytes) continue;
        stays = std::move(tried);
        packing = std::move(packed);
        if (packing.bytes <= enough) break;
    }
    for (const Stays::Last& last : stays.last)
        copies_of(graph, last.storage, plan)[static_cast<std::size_t>(last.slot)] = base + packing.offset[last.stay];
    for (const Stays::Visit& visit : stays.visits) {
        const std::int64_t at_end = plan.offset[visit.storage.index()][static_cast<std::size_t>(visit.slot)];
        const std::int64_t distance = base + packing.offset[visit.stay] - at_end;
        if (distance != 0) plan.elsewhere.push_back({visit.op, visit.storage, visit.micro_batch, distance});
    }
    std::sort(plan.elsewhere.begin(), plan.elsewhere.end(), comes_before);
    plan.arena_bytes += packing.bytes;
}

void place_views(const StepGraph& graph, MemoryPlan& plan) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (!tensor.view) continue;
        plan.offset[i] = plan.offset[tensor.view->of.index()];
        for (std::int64_t& offset : plan.offset[i])
            if (offset >= 0)
                offset += tensor.view->first_element * static_cast<std::int64_t>(size_of(tensor.dtype).value);
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
    const Lives lives = LifeFinder(graph).find(rank_class);
    MemoryPlan plan;
    find_peak(graph, lives, plan);
    plan.offset.resize(graph.tensors.size());
    place_carried(graph, lives, plan);
    place_shared(graph, rank_class, lives, plan);
    place_views(graph, plan);
    return plan;
}

std::int64_t MemoryPlan::distance(std::int32_t op, TensorId storage, std::int32_t micro_batch) const {
    for (const std::int32_t in : {-1, micro_batch}) {
        const Elsewhere wanted{op, storage, in};
        const auto found = std::lower_bound(elsewhere.begin(), elsewhere.end(), wanted, comes_before);
        if (found != elsewhere.end() && !comes_before(wanted, *found)) return found->distance;
    }
    return 0;
}

bool MemoryPlan::moves_with_micro_batch(std::int32_t op) const {
    const auto first = std::lower_bound(elsewhere.begin(), elsewhere.end(), Elsewhere{op}, comes_before);
    return std::any_of(first, elsewhere.end(), [&](const Elsewhere& e) { return e.op == op && e.micro_batch >= 0; });
}

}  // namespace lockstep::step
