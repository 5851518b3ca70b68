#include "sim/folding.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "sim/colours.hpp"

namespace lockstep::sim {

namespace {

/// Numbers colours in the order of their first owner.
std::vector<std::int32_t> numbered(const std::vector<Colour>& colours) {
    std::unordered_map<Colour, std::int32_t> known;
    std::vector<std::int32_t> result;
    result.reserve(colours.size());
    for (const Colour colour : colours)
        result.push_back(known.try_emplace(colour, static_cast<std::int32_t>(known.size())).first->second);
    return result;
}

/// The first link of each colour stands for all. Only links that something loads count.
struct LinkClasses {
    std::vector<std::int32_t> number_of_link;  ///< -1: of no class, or not the one that stands for its class
    std::vector<Bandwidth> capacities;
};

LinkClasses classes_of_links(const Traffic& traffic, const std::vector<Colour>& colours) {
    LinkClasses classes;
    classes.number_of_link.assign(traffic.links.size(), -1);
    std::unordered_map<Colour, std::int32_t> standing;  // the link that stands for a colour
    for (const Instance& instance : traffic.instances)
        for (const step::LinkLoad& load : instance.loads) {
            const auto link = static_cast<std::size_t>(load.link);
            const auto [entry, is_new] = standing.try_emplace(colours[link], load.link);
            if (!is_new) continue;
            classes.number_of_link[link] = static_cast<std::int32_t>(classes.capacities.size());
            classes.capacities.push_back(traffic.links[link]);
        }
    return classes;
}

/// By class of instances: what all of them do to the links that stand for their classes.
std::vector<std::vector<LinkUse>> uses_of_classes(const Traffic& traffic, const LinkClasses& links,
                                                  const std::vector<std::int32_t>& class_of_instance) {
    std::int32_t count = 0;
    for (const std::int32_t number : class_of_instance) count = std::max(count, number + 1);
    std::vector<std::vector<LinkUse>> uses(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < traffic.instances.size(); ++i) {
        auto& own = uses[static_cast<std::size_t>(class_of_instance[i])];
        for (const step::LinkLoad& load : traffic.instances[i].loads) {
            const std::int32_t number = links.number_of_link[static_cast<std::size_t>(load.link)];
            if (number < 0) continue;
            const auto known =
                std::ranges::find(own, SharedLinkId{number}, [](const LinkUse& use) { return use.link; });
            if (known == own.end())
                own.push_back({{number}, load.share});
            else
                known->share += load.share;
        }
    }
    return uses;
}

}  // namespace

std::vector<std::int32_t> Folding::groups_of(const std::vector<std::int32_t>& ranks) const {
    std::vector<std::int32_t> result;
    for (const std::int32_t rank : ranks) result.push_back(group(rank));
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

Folding fold(const step::StepGraph& graph, const Shapes& shapes, const Likeness& likeness, const Traffic& traffic,
             Fold how) {
    const Colours colours = refine(shapes, likeness, traffic, how == Fold::none);
    Folding folding;
    folding.group_of_rank = numbered(colours.of_rank);
    for (int rank = 0; rank < graph.mesh.ranks(); ++rank) {
        const auto group = static_cast<std::size_t>(folding.group(rank));
        const auto kind = static_cast<std::int32_t>(likeness.kind(rank));
        if (group == folding.groups.size())
            folding.groups.push_back({likeness.kinds[static_cast<std::size_t>(kind)].rank_class, kind, rank, 0});
        ++folding.groups[group].multiplicity;
    }
    const LinkClasses links = classes_of_links(traffic, colours.of_link);
    folding.links = links.capacities;
    const std::vector<std::int32_t> class_of_instance = numbered(colours.of_instance);
    const auto uses = uses_of_classes(traffic, links, class_of_instance);
    for (const RankGroup& group : folding.groups) {
        auto& own = folding.uses.emplace_back(shapes.all.size());
        for (const std::int32_t shape : shapes.of_class[group.rank_class.index()]) {
            const auto instance = static_cast<std::size_t>(traffic.instance(shape, group.representative));
            own[static_cast<std::size_t>(shape)] = uses[static_cast<std::size_t>(class_of_instance[instance])];
        }
    }
    return folding;
}

}  // namespace lockstep::sim
