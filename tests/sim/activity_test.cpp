#include "sim/activity.hpp"

#include <gtest/gtest.h>

namespace lockstep::sim {
namespace {

using Bytewise = Activities<Bytes>;
using Speed = Activities<Seconds>;
constexpr std::int64_t us = 1'000'000;

TEST(Activity, ends_after_work_over_rate) {
    Bytewise activities;
    // 1 MB at 1 GB/s = 1 ms
    const Due due = activities.start(Bytes{1e6}, 1_GBps, Picoseconds{5 * us});
    EXPECT_TRUE(due.is_posted);
    EXPECT_EQ(due.time.count, 1005 * us);
    EXPECT_EQ(activities.fire(due.id, due.version, due.time).outcome, Bytewise::Outcome::done);
    EXPECT_EQ(activities.active(), 0u);
}

TEST(Activity, slowed_midway_is_postponed_by_one_event) {
    Speed activities;
    // 10 us of work; after 4 us the speed halves: 6 us are left and take 12: the end is at 16 us.
    const Due due = activities.start(10_us, 1.0, Picoseconds{0});
    const Due slowed = activities.set_rate(due.id, 0.5, Picoseconds{4 * us});
    EXPECT_FALSE(slowed.is_posted);
    EXPECT_DOUBLE_EQ(activities.remaining(due.id, Picoseconds{6 * us}).value, 5e-6);
    const auto fired = activities.fire(due.id, due.version, due.time);
    ASSERT_EQ(fired.outcome, Speed::Outcome::postponed);
    EXPECT_EQ(fired.due.time.count, 16 * us);
    EXPECT_EQ(activities.fire(due.id, fired.due.version, fired.due.time).outcome, Speed::Outcome::done);
}

TEST(Activity, sped_up_midway_replaces_its_event) {
    Speed activities;
    // 10 us of work at half speed; at 4 us (8 us of work left) full speed: the end is at 12 us instead of 20.
    const Due slow = activities.start(10_us, 0.5, Picoseconds{0});
    EXPECT_EQ(slow.time.count, 20 * us);
    const Due fast = activities.set_rate(slow.id, 1.0, Picoseconds{4 * us});
    ASSERT_TRUE(fast.is_posted);
    EXPECT_EQ(fast.time.count, 12 * us);
    EXPECT_EQ(activities.fire(slow.id, fast.version, fast.time).outcome, Speed::Outcome::done);
    EXPECT_EQ(activities.fire(slow.id, slow.version, slow.time).outcome, Speed::Outcome::stale);
}

TEST(Activity, an_event_of_a_former_user_of_the_slot_is_stale) {
    Speed activities;
    const Due slow = activities.start(10_us, 0.5, Picoseconds{0});
    const Due fast = activities.set_rate(slow.id, 1.0, Picoseconds{0});
    activities.fire(fast.id, fast.version, fast.time);
    const Due next = activities.start(50_us, 1.0, fast.time);
    EXPECT_EQ(next.id, slow.id);
    EXPECT_EQ(activities.fire(slow.id, slow.version, slow.time).outcome, Speed::Outcome::stale);
    EXPECT_EQ(activities.active(), 1u);
}

TEST(Activity, at_rate_0_stands_still_until_the_rate_rises) {
    Speed activities;
    const Due due = activities.start(3_us, 1.0, Picoseconds{0});
    EXPECT_FALSE(activities.set_rate(due.id, 0.0, Picoseconds{1 * us}).is_posted);
    const auto fired = activities.fire(due.id, due.version, due.time);
    EXPECT_EQ(fired.outcome, Speed::Outcome::postponed);
    EXPECT_FALSE(fired.due.is_posted);
    const Due again = activities.set_rate(due.id, 1.0, Picoseconds{10 * us});
    ASSERT_TRUE(again.is_posted);
    EXPECT_EQ(again.time.count, 12 * us);
}

TEST(Activity, without_work_is_done_at_once) {
    Speed activities;
    const Due due = activities.start(Seconds{0}, 1.0, Picoseconds{9});
    EXPECT_EQ(due.time.count, 9);
    EXPECT_EQ(activities.fire(due.id, due.version, due.time).outcome, Speed::Outcome::done);
}

TEST(Activity, that_would_last_for_ever_is_an_error) {
    Speed activities;
    EXPECT_THROW(activities.start(1_s, 1e-9, Picoseconds{0}), RuntimeError);
}

}  // namespace
}  // namespace lockstep::sim
