// The published properties of pipeline schedules, on the times that unit costs give.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.hpp"
#include "plan/pipeline.hpp"

namespace lockstep::plan {
namespace {

using Kind = PipelineSlot::Kind;
using Pass = std::tuple<Kind, int, int>;  // kind, chunk of the pipeline, micro-batch

struct Shape {
    Schedule schedule;
    int pp, vpp, micro_batches;
    int chunks() const { return pp * vpp; }
};

/// What has to be done before a pass: the chunk before it forward, the chunk behind it backward (the loss: forward).
std::optional<Pass> needed_by(const Pass& pass, int chunks) {
    const auto [kind, chunk, m] = pass;
    if (kind == Kind::forward) return chunk == 0 ? std::nullopt : std::optional<Pass>({kind, chunk - 1, m});
    if (chunk == chunks - 1) return Pass{Kind::forward, chunk, m};
    return Pass{kind, chunk + 1, m};
}

/// The time of a step when each pass of a chunk forward takes `forward` and backward `backward`, stages work in order
/// and messages take no time; none when the stages wait for one another for ever.
std::optional<int> step_time(const Shape& s, int forward, int backward) {
    std::vector<std::vector<PipelineSlot>> orders;
    for (int stage = 0; stage < s.pp; ++stage)
        orders.push_back(pipeline_order(s.schedule, s.pp, s.vpp, stage, s.micro_batches));
    std::map<Pass, int> done;
    std::vector<std::size_t> next(orders.size(), 0);
    std::vector<int> free(orders.size(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t stage = 0; stage < orders.size(); ++stage)
            while (next[stage] < orders[stage].size()) {
                const PipelineSlot& slot = orders[stage][next[stage]];
                const Pass pass{slot.kind, slot.chunk * s.pp + static_cast<int>(stage), slot.micro_batch};
                const auto needed = needed_by(pass, s.chunks());
                if (needed && !done.contains(*needed)) break;
                const int start = std::max(free[stage], needed ? done.at(*needed) : 0);
                done[pass] = free[stage] = start + (slot.kind == Kind::forward ? forward : backward);
                ++next[stage];
                moved = true;
            }
    }
    for (std::size_t stage = 0; stage < orders.size(); ++stage)
        if (next[stage] != orders[stage].size()) return std::nullopt;
    return *std::ranges::max_element(free);
}

std::vector<Shape> shapes() {
    std::vector<Shape> all;
    for (const int pp : {1, 2, 3, 4, 8})
        for (const int m : {1, 2, 3, 5, 8, 24}) {
            all.push_back({Schedule::gpipe, pp, 1, m});
            all.push_back({Schedule::one_forward_one_backward, pp, 1, m});
            for (const int vpp : {2, 3, 4})
                if (m % pp == 0) all.push_back({Schedule::interleaved, pp, vpp, m});
        }
    return all;
}

std::string name(const Shape& s) {
    return std::string(to_string(s.schedule)) + " pp " + std::to_string(s.pp) + " vpp " + std::to_string(s.vpp) +
           " m " + std::to_string(s.micro_batches);
}

TEST(Pipeline, every_chunk_takes_every_micro_batch_forward_and_then_backward_once) {
    for (const Shape& s : shapes())
        for (int stage = 0; stage < s.pp; ++stage) {
            const auto order = pipeline_order(s.schedule, s.pp, s.vpp, stage, s.micro_batches);
            ASSERT_EQ(order.size(), static_cast<std::size_t>(2 * s.vpp * s.micro_batches)) << name(s);
            std::map<std::pair<int, int>, int> passes;
            for (const PipelineSlot& slot : order) {
                ASSERT_TRUE(slot.chunk >= 0 && slot.chunk < s.vpp && slot.micro_batch >= 0 &&
                            slot.micro_batch < s.micro_batches);
                const int before = passes[{slot.chunk, slot.micro_batch}]++;
                EXPECT_EQ(before, slot.kind == Kind::forward ? 0 : 1) << name(s);
            }
            EXPECT_EQ(passes.size(), static_cast<std::size_t>(s.vpp * s.micro_batches)) << name(s);
        }
}

TEST(Pipeline, no_schedule_makes_stages_wait_for_one_another_for_ever) {
    for (const Shape& s : shapes()) EXPECT_TRUE(step_time(s, 1, 2).has_value()) << name(s);
}

// Narayanan et al. 2021, section 2.2.1: bubble / ideal = (p - 1) / m, of GPipe and 1F1B alike.
TEST(Pipeline, bubble_of_1f1b_and_gpipe_is_p_minus_1_over_m) {
    for (const Shape& s : shapes()) {
        if (s.schedule == Schedule::interleaved) continue;
        for (const int backward : {1, 2}) {
            const int ideal = s.micro_batches * (1 + backward);
            EXPECT_EQ(step_time(s, 1, backward), ideal + (s.pp - 1) * (1 + backward)) << name(s);
        }
    }
}

// Section 2.2.2: with v chunks a stage, each of 1 / v of the work, the bubble is (p - 1) / (m v) of the ideal time.
TEST(Pipeline, bubble_of_interleaved_is_p_minus_1_over_m_v) {
    for (const Shape& s : shapes()) {
        if (s.schedule != Schedule::interleaved) continue;
        for (const int backward : {1, 2}) {
            const int ideal = s.micro_batches * s.vpp * (1 + backward);  // in passes of one chunk
            EXPECT_EQ(step_time(s, 1, backward), ideal + (s.pp - 1) * (1 + backward)) << name(s);
        }
    }
}

TEST(Pipeline, stage_s_of_1f1b_keeps_p_minus_s_micro_batches_and_gpipe_all) {
    for (const Shape& s : shapes())
        for (int stage = 0; stage < s.pp; ++stage) {
            const auto order = pipeline_order(s.schedule, s.pp, s.vpp, stage, s.micro_batches);
            if (s.schedule == Schedule::gpipe) { EXPECT_EQ(most_in_flight(order, 0), s.micro_batches) << name(s); }
            if (s.schedule == Schedule::one_forward_one_backward) {
                EXPECT_EQ(most_in_flight(order, 0), std::min(s.pp - stage, s.micro_batches)) << name(s);
            }
        }
}

// Section 2.2.2: p (1 + (p - 1) / (p v)) chunks' worth of activations of 1 / v a stage where 1F1B keeps p, on stage 0:
// p v + p - 1 of the smaller chunks.
TEST(Pipeline, the_first_stage_of_an_interleaved_schedule_keeps_p_v_plus_p_minus_1_chunks) {
    for (const Shape& s : shapes()) {
        if (s.schedule != Schedule::interleaved || s.micro_batches < 2 * s.pp) continue;
        int now = 0, most = 0;
        for (const PipelineSlot& slot : pipeline_order(s.schedule, s.pp, s.vpp, 0, s.micro_batches)) {
            now += slot.kind == Kind::forward ? 1 : -1;
            most = std::max(most, now);
        }
        EXPECT_EQ(most, s.pp * s.vpp + s.pp - 1) << name(s);
    }
}

// Figure 4 of the paper (bottom): p = 4, m = 8, v = 2; device 1 starts 1 2 3 4 | 1 2 3 4 (second chunk) | 5 6 7, and
// then alternates forward 8 of the first chunk with backward 1 of the second.
TEST(Pipeline, interleaved_of_4_stages_2_chunks_starts_as_in_the_paper) {
    const auto order = pipeline_order(Schedule::interleaved, 4, 2, 0, 8);
    std::vector<PipelineSlot> expected;
    for (int m = 0; m < 4; ++m) expected.push_back({Kind::forward, 0, m});
    for (int m = 0; m < 4; ++m) expected.push_back({Kind::forward, 1, m});
    for (int m = 4; m < 6; ++m) expected.push_back({Kind::forward, 0, m});
    expected.push_back({Kind::forward, 0, 6});
    expected.push_back({Kind::backward, 1, 0});
    expected.push_back({Kind::forward, 0, 7});
    expected.push_back({Kind::backward, 1, 1});
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(order[i], expected[i]) << i;
}

TEST(Pipeline, interleaved_refuses_micro_batches_that_are_no_multiple_of_p_and_names_the_next) {
    try {
        pipeline_order(Schedule::interleaved, 4, 2, 0, 6);
        ADD_FAILURE() << "no error";
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("use 4 or 8"), std::string::npos) << error.what();
    }
    EXPECT_THROW(pipeline_order(Schedule::one_forward_one_backward, 4, 2, 0, 8), LogicError);
    EXPECT_THROW(pipeline_order(Schedule::gpipe, 4, 1, 4, 8), LogicError);
}

}  // namespace
}  // namespace lockstep::plan
