#include "step/gradient_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "step/assembly.hpp"
#include "step/precision.hpp"

namespace lockstep::step {

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<Bytes>& sizes, Bytes first, Bytes limit) {
    std::vector<std::vector<std::size_t>> buckets;
    Bytes filled;
    bool is_open = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!is_open) buckets.emplace_back();
        buckets.back().push_back(i);
        filled += sizes[i];
        is_open = filled < (buckets.size() == 1 ? first : limit);
        if (!is_open) filled = Bytes{};
    }
    return buckets;
}

namespace {

std::int64_t elements_of(const Assembly& a, model::ParameterId id) { return local_shape(a, id).elements(); }

/// Parameters of a chunk in reverse order of first use.
std::vector<model::ParameterId> backward_order(const Assembly& a, const Chunk& chunk) {
    std::set<model::ParameterId, std::greater<>> order;
    for (const model::LayerId layer : chunk.layers)
        order.insert(a.layer(layer).parameters.begin(), a.layer(layer).parameters.end());
    return {order.begin(), order.end()};
}

void add_group(Assembly& a, Chunk& chunk, GradientGroup group, const std::vector<model::ParameterId>& members) {
    if (members.empty()) return;
    GradientGroups& all = chunk.groups;
    const auto index = static_cast<std::int32_t>(all.groups.size());
    group.name =
        a.chunks.size() == 1 ? fmt::format("bucket{}", index) : fmt::format("chunk{}.bucket{}", chunk.number, index);
    for (const model::ParameterId id : members) {
        all.group_of[id] = index;
        group.parameters.push_back(id);
        group.first_element.push_back(group.elements);
        group.elements += elements_of(a, id);
    }
    if (a.zero() > 0) {
        const std::int64_t ranks = a.extent(a.shard_axes(group.sum));
        group.elements = (group.elements + ranks - 1) / ranks * ranks;
    }
    group.missing = group.parameters.size();
    all.groups.push_back(std::move(group));
}

struct Bucket {
    GradientSum sum = GradientSum::none;
    std::vector<model::ParameterId> members;
};

void fill_buckets(const Assembly& a, GradientSum sum, const std::vector<model::ParameterId>& order,
                  std::vector<Bucket>& buckets) {
    if (a.data_axes(sum).empty()) return;
    std::vector<Bytes> sizes;
    for (const model::ParameterId id : order)
        sizes.push_back(static_cast<double>(elements_of(a, id)) * size_of(gradient_dtype(a.input.precision)));
    for (const auto& members : assign_buckets(sizes, a.input.plan.first_bucket, a.input.plan.bucket)) {
        buckets.push_back({sum, {}});
        for (const std::size_t i : members) buckets.back().members.push_back(order[i]);
    }
}

/// The block of the model in which a parameter is used first.
std::map<model::ParameterId, int> units_of(const Assembly& a, const Chunk& chunk) {
    std::map<model::ParameterId, int> units;
    for (const model::LayerId layer : chunk.layers)
        for (const model::ParameterId id : a.layer(layer).parameters)
            units.try_emplace(id, a.layer(layer).repeat_group);
    return units;
}

void add_units(Assembly& a, Chunk& chunk, const std::vector<model::ParameterId>& order) {
    const std::map<model::ParameterId, int> units = units_of(a, chunk);
    std::vector<int> sequence;
    for (const model::ParameterId id : order) {
        const int unit = units.at(id);
        if (std::find(sequence.begin(), sequence.end(), unit) == sequence.end()) sequence.push_back(unit);
    }
    // What is in no block is complete last: its gathers and sums enclose all others.
    std::stable_partition(sequence.begin(), sequence.end(), [](int unit) { return unit >= 0; });
    auto& tensors = a.parameters[static_cast<std::size_t>(chunk.stage)];
    for (const int unit : sequence)
        for (const bool is_trained : {true, false})
            for (const GradientSum sum :
                 {GradientSum::none, GradientSum::of_experts, GradientSum::over_tp, GradientSum::over_stages}) {
                std::vector<model::ParameterId> members;
                for (const model::ParameterId id : order)
                    if (units.at(id) == unit && (tensors[id].uses_left > 0) == is_trained && tensors[id].sum == sum)
                        members.push_back(id);
                GradientGroup group;
                group.sum = sum;
                group.is_trained = is_trained;
                group.unit = unit;
                add_group(a, chunk, std::move(group), members);
            }
}

}  // namespace

void layout_groups(Assembly& a, Chunk& chunk) {
    const std::vector<model::ParameterId> order = backward_order(a, chunk);
    if (a.zero() == 3) return add_units(a, chunk, order);
    auto& tensors = a.parameters[static_cast<std::size_t>(chunk.stage)];
    auto trained_with = [&](GradientSum sum) {
        std::vector<model::ParameterId> members;
        for (const model::ParameterId id : order)
            if (tensors[id].uses_left > 0 && tensors[id].sum == sum && chunk.groups.group_of.count(id) == 0)
                members.push_back(id);
        return members;
    };
    // Experts have buckets of their own, between the others as they are complete.
    std::vector<Bucket> buckets;
    for (const GradientSum sum : {GradientSum::none, GradientSum::of_experts})
        fill_buckets(a, sum, trained_with(sum), buckets);
    std::stable_sort(buckets.begin(), buckets.end(),
                     [](const Bucket& b, const Bucket& c) { return b.members.back() > c.members.back(); });
    for (const Bucket& bucket : buckets) {
        GradientGroup group;
        group.sum = bucket.sum;
        add_group(a, chunk, std::move(group), bucket.members);
    }
    for (const GradientSum sum : {GradientSum::over_tp, GradientSum::over_stages}) {
        GradientGroup group;
        group.sum = sum;
        add_group(a, chunk, std::move(group), trained_with(sum));
    }
}

}  // namespace lockstep::step
