#include "sim/transfers.hpp"

#include <array>

#include <gtest/gtest.h>

#include "sim/event_queue.hpp"

namespace lockstep::sim {
namespace {

struct Pending {
    ActivityId id;
    std::uint32_t version;
};

/// Runs all pending events; the end of each transfer by its id.
std::vector<Picoseconds> run_all(Transfers& transfers, std::vector<std::pair<Picoseconds, Bytes>> starts,
                                 std::span<const LinkUse> uses) {
    EventQueue<Pending> queue;
    std::vector<Picoseconds> ends(starts.size());
    std::vector<std::size_t> order(starts.size());
    auto post = [&] {
        for (const Due& due : transfers.posts()) queue.push(due.time, {due.id, due.version});
        transfers.clear_posts();
    };
    for (std::size_t i = 0; i < starts.size(); ++i) queue.push(starts[i].first, {{-1}, static_cast<std::uint32_t>(i)});
    while (!queue.is_empty()) {
        const auto event = queue.pop();
        if (!event.payload.id.is_valid()) {
            const ActivityId id =
                transfers.start(starts[event.payload.version].second, Bandwidth{1e300}, uses, event.time);
            order.at(id.index()) = event.payload.version;
        } else if (transfers.fire(event.payload.id, event.payload.version, event.time) == Transfers::Outcome::done) {
            ends[order[event.payload.id.index()]] = event.time;
        }
        post();
    }
    return ends;
}

TEST(Transfers, that_overlap_on_a_link_slow_each_other) {
    // Link 1 GB/s. A: 2 MB from 0; B: 2 MB from 1 ms. A has 1 MB left at 1 ms, both at 0.5 GB/s: A ends at 3 ms with
    // 1 MB of B left, which then has the link alone: B ends at 4 ms.
    Transfers transfers;
    const std::array use{LinkUse{transfers.add_link(1_GBps)}};
    constexpr std::int64_t ms = 1'000'000'000;
    const auto ends = run_all(transfers, {{Picoseconds{0}, Bytes{2e6}}, {Picoseconds{ms}, Bytes{2e6}}}, use);
    EXPECT_EQ(ends[0].count, 3 * ms);
    EXPECT_EQ(ends[1].count, 4 * ms);
    EXPECT_EQ(transfers.rate_changes(), 4u);  // A and B begin, A halves, B doubles
}

TEST(Transfers, without_shared_links_keep_their_caps) {
    Transfers transfers;
    const ActivityId a = transfers.start(1_MiB, 3_GBps, {}, Picoseconds{0});
    const ActivityId b = transfers.start(1_MiB, 5_GBps, {}, Picoseconds{0});
    EXPECT_EQ(transfers.rate(a), 3_GBps);
    EXPECT_EQ(transfers.rate(b), 5_GBps);
}

}  // namespace
}  // namespace lockstep::sim
