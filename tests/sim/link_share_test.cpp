// Each test states its equations; the expected rates solve them by hand. C: capacity of a link; x: rate of a flow.
#include "sim/link_share.hpp"

#include <array>
#include <random>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace lockstep::sim {
namespace {

constexpr Bandwidth no_cap{1e300};

double gb(const LinkShare& share, FlowId flow) { return share.rate(flow).value / 1e9; }

TEST(LinkShare, a_flow_without_links_runs_at_its_cap) {
    LinkShare share;
    EXPECT_DOUBLE_EQ(gb(share, share.add_flow(7_GBps, {})), 7);
}

TEST(LinkShare, two_flows_halve_a_link) {
    // x1 + x2 <= 10: (5, 5)
    LinkShare share;
    const std::array use{LinkUse{share.add_link(10_GBps)}};
    const FlowId a = share.add_flow(no_cap, use);
    EXPECT_DOUBLE_EQ(gb(share, a), 10);
    const FlowId b = share.add_flow(no_cap, use);
    EXPECT_DOUBLE_EQ(gb(share, a), 5);
    EXPECT_DOUBLE_EQ(gb(share, b), 5);
    share.remove_flow(a);
    EXPECT_DOUBLE_EQ(gb(share, b), 10);
}

TEST(LinkShare, what_a_capped_flow_leaves_goes_to_the_others) {
    // x1 + x2 + x3 <= 12, x1 <= 2: (2, 5, 5)
    LinkShare share;
    const std::array use{LinkUse{share.add_link(12_GBps)}};
    const FlowId a = share.add_flow(2_GBps, use), b = share.add_flow(no_cap, use), c = share.add_flow(no_cap, use);
    EXPECT_DOUBLE_EQ(gb(share, a), 2);
    EXPECT_DOUBLE_EQ(gb(share, b), 5);
    EXPECT_DOUBLE_EQ(gb(share, c), 5);
}

TEST(LinkShare, caps_that_fit_leave_the_link_slack) {
    // x1 + x2 <= 10, x1 <= 3, x2 <= 4: (3, 4)
    LinkShare share;
    const std::array use{LinkUse{share.add_link(10_GBps)}};
    const FlowId a = share.add_flow(3_GBps, use), b = share.add_flow(4_GBps, use);
    EXPECT_DOUBLE_EQ(gb(share, a), 3);
    EXPECT_DOUBLE_EQ(gb(share, b), 4);
}

TEST(LinkShare, a_long_flow_takes_its_share_of_the_narrowest_link) {
    // Two links in a line: x0 + x1 <= 4, x0 + x2 <= 10: x0 = x1 = 2, x2 = 8
    LinkShare share;
    const SharedLinkId l1 = share.add_link(4_GBps), l2 = share.add_link(10_GBps);
    const std::array both{LinkUse{l1}, LinkUse{l2}};
    const std::array first{LinkUse{l1}};
    const std::array second{LinkUse{l2}};
    const FlowId x0 = share.add_flow(no_cap, both), x1 = share.add_flow(no_cap, first),
                 x2 = share.add_flow(no_cap, second);
    EXPECT_DOUBLE_EQ(gb(share, x0), 2);
    EXPECT_DOUBLE_EQ(gb(share, x1), 2);
    EXPECT_DOUBLE_EQ(gb(share, x2), 8);
}

TEST(LinkShare, three_links_fill_at_three_levels) {
    // A: x1 + x2 + x3 <= 3; B: x3 + x4 <= 5; C: x4 + x5 <= 20 with x5 <= 9.
    // A fills at 1: x1 = x2 = x3 = 1; B gives x4 = 4; C leaves 16, so x5 = 9.
    LinkShare share;
    const SharedLinkId a = share.add_link(3_GBps), b = share.add_link(5_GBps), c = share.add_link(20_GBps);
    const std::array on_a{LinkUse{a}};
    const std::array on_ab{LinkUse{a}, LinkUse{b}};
    const std::array on_bc{LinkUse{b}, LinkUse{c}};
    const std::array on_c{LinkUse{c}};
    const FlowId x1 = share.add_flow(no_cap, on_a), x2 = share.add_flow(no_cap, on_a),
                 x3 = share.add_flow(no_cap, on_ab), x4 = share.add_flow(no_cap, on_bc),
                 x5 = share.add_flow(9_GBps, on_c);
    EXPECT_DOUBLE_EQ(gb(share, x1), 1);
    EXPECT_DOUBLE_EQ(gb(share, x2), 1);
    EXPECT_DOUBLE_EQ(gb(share, x3), 1);
    EXPECT_DOUBLE_EQ(gb(share, x4), 4);
    EXPECT_DOUBLE_EQ(gb(share, x5), 9);
}

TEST(LinkShare, a_flow_that_loads_a_link_twice_counts_twice) {
    // 2 x1 + x2 <= 9: x1 = x2 = 3
    LinkShare share;
    const SharedLinkId link = share.add_link(9_GBps);
    const std::array twice{LinkUse{link, 2}};
    const std::array once{LinkUse{link}};
    const FlowId a = share.add_flow(no_cap, twice), b = share.add_flow(no_cap, once);
    EXPECT_DOUBLE_EQ(gb(share, a), 3);
    EXPECT_DOUBLE_EQ(gb(share, b), 3);
}

TEST(LinkShare, a_link_that_slows_down_takes_its_flows_with_it) {
    LinkShare share;
    const SharedLinkId link = share.add_link(10_GBps);
    const std::array use{LinkUse{link}};
    const FlowId a = share.add_flow(no_cap, use), b = share.add_flow(2_GBps, use);
    share.take_changed();
    share.set_capacity(link, 5_GBps);
    EXPECT_DOUBLE_EQ(gb(share, a), 3);
    EXPECT_DOUBLE_EQ(gb(share, b), 2);
    EXPECT_EQ(share.take_changed(), std::vector<FlowId>{a});
    EXPECT_TRUE(share.take_changed().empty());
}

TEST(LinkShare, flows_on_other_links_are_not_touched) {
    LinkShare share;
    const std::array here{LinkUse{share.add_link(10_GBps)}};
    const std::array there{LinkUse{share.add_link(10_GBps)}};
    const FlowId a = share.add_flow(no_cap, here);
    share.take_changed();
    const FlowId b = share.add_flow(no_cap, there);
    EXPECT_EQ(share.take_changed(), std::vector<FlowId>{b});
    EXPECT_DOUBLE_EQ(gb(share, a), 10);
}

TEST(LinkShare, a_rate_of_0_is_refused) {
    LinkShare share;
    EXPECT_THROW(share.add_link(Bandwidth{0}), LogicError);
    EXPECT_THROW(share.add_flow(Bandwidth{-1}, {}), LogicError);
}

// Max-min optimality (Bertsekas and Gallager): capacities hold, and each flow is at its cap or crosses a full link on
// which no flow is faster. After any history of additions and removals.
TEST(LinkShare, every_flow_of_a_random_network_has_a_bottleneck) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
    struct Known {
        FlowId id;
        double cap;
        std::vector<LinkUse> uses;
    };
    for (int network = 0; network < 50; ++network) {
        LinkShare share;
        std::vector<double> capacity;
        for (int i = 0; i < 6; ++i) {
            capacity.push_back(uniform(1, 100));
            share.add_link(Bandwidth{capacity.back()});
        }
        std::vector<Known> flows;
        for (int change = 0; change < 60; ++change) {
            if (flows.size() > 3 && random() % 3 == 0) {
                const std::size_t victim = random() % flows.size();
                share.remove_flow(flows[victim].id);
                flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(victim));
            } else {
                Known flow{{}, uniform(1, 60), {}};
                for (int l = 0; l < 6; ++l)
                    if (random() % 3 == 0) flow.uses.push_back({SharedLinkId{l}, uniform(0.1, 2)});
                flow.id = share.add_flow(Bandwidth{flow.cap}, flow.uses);
                flows.push_back(flow);
            }
            std::vector<double> load(6, 0.0), fastest(6, 0.0);
            for (const Known& f : flows)
                for (const LinkUse& use : f.uses) {
                    load[use.link.index()] += use.share * share.rate(f.id).value;
                    fastest[use.link.index()] = std::max(fastest[use.link.index()], share.rate(f.id).value);
                }
            for (std::size_t l = 0; l < 6; ++l) ASSERT_LE(load[l], capacity[l] * (1 + 1e-9));
            for (const Known& f : flows) {
                const double rate = share.rate(f.id).value;
                bool is_limited = rate >= f.cap * (1 - 1e-9);
                for (const LinkUse& use : f.uses)
                    is_limited |= load[use.link.index()] >= capacity[use.link.index()] * (1 - 1e-9) &&
                                  rate >= fastest[use.link.index()] * (1 - 1e-9);
                ASSERT_TRUE(is_limited);
                ASSERT_LE(rate, f.cap * (1 + 1e-12));
            }
        }
    }
}

}  // namespace
}  // namespace lockstep::sim
