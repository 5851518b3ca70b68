#include "sim/colours.hpp"

#include <algorithm>
#include <bit>

#include "base/random.hpp"

namespace lockstep::sim {

namespace {

/// Of an ordered pair; chained for longer lists.
Colour mixed(Colour a, Colour b) { return random_bits(a, b, 0x5eed); }
Colour of_number(double value) {
    // Shares are sums made in different orders: what differs in the last digits is the same.
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

std::size_t count_different(std::vector<Colour> colours) {
    std::ranges::sort(colours);
    return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

class Refinement {
public:
    Refinement(const Shapes& shapes, const Likeness& likeness, const Traffic& traffic)
        : shapes_(shapes), likeness_(likeness), traffic_(traffic) {
        colours_.of_instance.resize(traffic.instances.size());
        for (const Bandwidth capacity : traffic.links) colours_.of_link.push_back(of_number(capacity.value));
    }

    Colours run(bool are_ranks_apart) {
        for (std::size_t rank = 0; rank < likeness_.kind_of_rank.size(); ++rank)
            colours_.of_rank.push_back(mixed(likeness_.kind(static_cast<int>(rank)), are_ranks_apart ? rank + 1 : 0));
        std::size_t different = 0;
        for (;;) {
            colour_instances();
            colour_links();
            const std::size_t now = count_different(colours_.of_rank) + count_different(colours_.of_link) +
                                    count_different(colours_.of_instance);
            if (now == different) return std::move(colours_);
            different = now;
            colour_ranks();
        }
    }

private:
    /// Members of a collective have no order; the peers of messages have.
    void colour_instances() {
        for (std::size_t i = 0; i < traffic_.instances.size(); ++i) {
            const Instance& instance = traffic_.instances[i];
            Colour ranks = 0, links = 0;
            for (const std::int32_t rank : instance.ranks) {
                const Colour colour = colours_.of_rank[static_cast<std::size_t>(rank)];
                ranks = instance.is_collective ? ranks + mixed(colour, 1) : mixed(ranks, colour);
            }
            for (const step::LinkLoad& load : instance.loads)
                links += mixed(colours_.of_link[static_cast<std::size_t>(load.link)], of_number(load.share));
            colours_.of_instance[i] = mixed(mixed(static_cast<Colour>(instance.shape), ranks), links);
        }
    }

    void colour_links() {
        std::vector<Colour> sums(colours_.of_link.size(), 0);
        for (std::size_t i = 0; i < traffic_.instances.size(); ++i)
            for (const step::LinkLoad& load : traffic_.instances[i].loads)
                sums[static_cast<std::size_t>(load.link)] += mixed(colours_.of_instance[i], of_number(load.share));
        for (std::size_t link = 0; link < sums.size(); ++link)
            colours_.of_link[link] = mixed(colours_.of_link[link], sums[link]);
    }

    void colour_ranks() {
        for (std::size_t rank = 0; rank < colours_.of_rank.size(); ++rank) {
            const RankKind& kind = likeness_.kinds[likeness_.kind(static_cast<int>(rank))];
            Colour& colour = colours_.of_rank[rank];
            for (const std::int32_t shape : shapes_.of_class[kind.rank_class.index()]) {
                const std::int32_t instance = traffic_.instance(shape, static_cast<int>(rank));
                colour = mixed(colour, colours_.of_instance[static_cast<std::size_t>(instance)]);
            }
        }
    }

    const Shapes& shapes_;
    const Likeness& likeness_;
    const Traffic& traffic_;
    Colours colours_;
};

}  // namespace

Colours refine(const Shapes& shapes, const Likeness& likeness, const Traffic& traffic, bool are_ranks_apart) {
    return Refinement(shapes, likeness, traffic).run(are_ranks_apart);
}

}  // namespace lockstep::sim
