// What a LiveWriter wrote is what a RunReader reads, during the run and after it.
#include <gtest/gtest.h>

#include "record/field_text.hpp"
#include "record/graph_text.hpp"
#include "record/live_writer.hpp"
#include "record/run_fields.hpp"
#include "record/run_file.hpp"
#include "record/run_reader.hpp"
#include "record/sample_run.hpp"

namespace lockstep::record::test {
namespace {

/// What the reader must give for a step of a rank of an unmerged run: on rank 0's clock.
step::StepRecord expected(const step::StepGraph& graph, int rank, std::int64_t step, int events) {
    auto record = make_step(graph, rank, step, events);
    const Nanoseconds offset = full_rank(rank).clock_offset;
    record.begin = record.begin + offset;
    record.end = record.end + offset;
    for (auto& span : record.spans) {
        span.ready = span.ready + offset;
        span.start = span.start + offset;
        span.end = span.end + offset;
    }
    if (record.device) record.device->time = record.device->time + offset;
    return record;
}

TEST(RoundTrip, a_run_of_three_ranks_is_read_as_it_was_written) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    write_run(folder / "run", graph, {4, 4, 4});
    const RunReader run(folder / "run");
    EXPECT_EQ(run.status(), Status::complete);
    EXPECT_EQ(run.steps(), 4);
    EXPECT_FALSE(run.is_alive());
    EXPECT_FALSE(run.is_merged());
    EXPECT_TRUE(run.remarks().empty());
    EXPECT_EQ(to_text(run.run()), to_text(full_description(3)));
    EXPECT_EQ(graph_to_text(run.graph()), graph_to_text(graph));
    ASSERT_EQ(run.ranks().size(), 3U);
    for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(to_text(run.ranks()[static_cast<std::size_t>(rank)]), to_text(full_rank(rank)));
    const auto records = read_all(run);
    ASSERT_EQ(records.size(), 12U);
    for (std::size_t i = 0; i < records.size(); ++i)
        EXPECT_TRUE(same(records[i], expected(graph, static_cast<int>(i % 3), static_cast<std::int64_t>(i / 3), 30)))
            << i;
}

TEST(RoundTrip, samples_of_the_device_are_read_with_their_step_before_and_after_a_merge) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    write_run(folder / "run", graph, {7, 7, 7});
    for (const bool is_merged : {false, true}) {
        if (is_merged) merge_run(folder / "run");
        const auto records = read_all(RunReader(folder / "run"));
        ASSERT_EQ(records.size(), 21U);
        int sampled = 0;
        for (std::size_t i = 0; i < records.size(); ++i) {
            const auto wanted = expected(graph, static_cast<int>(i % 3), static_cast<std::int64_t>(i / 3), 30).device;
            EXPECT_EQ(records[i].device, wanted) << i;
            sampled += wanted ? 1 : 0;
        }
        EXPECT_EQ(sampled, 12);  // steps 0, 1, 2, 4, 5, 6 of ranks 0 and 2
    }
}

TEST(RoundTrip, a_sample_that_tells_nothing_is_none_and_one_of_a_device_that_is_not_sampled_is_refused) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    LiveWriter writer(rank_file(folder.path(), 0), full_description(1), full_rank(0), graph);
    auto record = make_step(graph, 0, 0, 3);
    record.device = step::DeviceSample{};
    writer.append(record);
    EXPECT_FALSE(read_all(RunReader(folder.path())).at(0).device);
    LiveWriter other(rank_file(folder.path(), 1), full_description(2), full_rank(1), graph);
    record.rank = 1;
    EXPECT_THROW(other.append(record), LogicError);
    EXPECT_EQ(other.steps_written(), 0);
}

TEST(RoundTrip, facts_of_every_rank_are_kept_by_a_merge) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {2, 2, 2});
    merge_run(folder / "run");
    const RunReader run(folder / "run");
    for (int rank = 0; rank < 3; ++rank)
        EXPECT_EQ(run.ranks()[static_cast<std::size_t>(rank)].facts, full_rank(rank).facts);
}

TEST(RoundTrip, a_step_without_spans_and_one_of_many_chunks_are_read) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    make_run_folder(folder / "run");
    LiveWriter writer(rank_file(folder / "run", 0), full_description(1), full_rank(0), graph);
    const std::vector<int> events{0, 10'000, 1, 4096, 0};
    for (std::size_t i = 0; i < events.size(); ++i)
        writer.append(make_step(graph, 0, static_cast<std::int64_t>(i), events[i]));
    writer.close();
    const auto records = read_all(RunReader(folder / "run"));
    ASSERT_EQ(records.size(), events.size());
    for (std::size_t i = 0; i < records.size(); ++i)
        EXPECT_TRUE(same(records[i], make_step(graph, 0, static_cast<std::int64_t>(i), events[i]))) << i;
}

TEST(RoundTrip, a_range_of_steps_is_cut_to_what_is_there) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {5, 5});
    for (const bool is_merged : {false, true}) {
        if (is_merged) merge_run(folder / "run");
        const RunReader run(folder / "run");
        const auto steps = [&](std::int64_t first, std::int64_t last) {
            std::vector<std::pair<std::int64_t, int>> seen;
            run.for_each(first, last, [&](const auto& record) { seen.emplace_back(record.step, record.rank); });
            return seen;
        };
        using Seen = std::vector<std::pair<std::int64_t, int>>;
        EXPECT_EQ(steps(1, 3), (Seen{{1, 0}, {1, 1}, {2, 0}, {2, 1}}));
        EXPECT_EQ(steps(-7, 1), (Seen{{0, 0}, {0, 1}}));
        EXPECT_EQ(steps(4, 1000), (Seen{{4, 0}, {4, 1}}));
        EXPECT_TRUE(steps(3, 3).empty());
        EXPECT_TRUE(steps(9, 20).empty());
    }
}

TEST(RoundTrip, spans_of_every_third_step_and_the_times_of_all_are_kept) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    auto run = full_description(1);
    run.record_every = 3;
    make_run_folder(folder / "run");
    LiveWriter writer(rank_file(folder / "run", 0), run, full_rank(0), graph);
    for (int step = 0; step < 7; ++step) writer.append(make_step(graph, 0, step, 30));
    writer.close();
    const auto records = read_all(RunReader(folder / "run"));
    ASSERT_EQ(records.size(), 7U);
    for (const auto& record : records) {
        EXPECT_EQ(record.spans.size(), record.step % 3 == 0 ? 30U : 0U);
        EXPECT_EQ(record.end, make_step(graph, 0, record.step, 30).end);
    }
}

TEST(RoundTrip, every_step_is_read_while_the_next_are_written) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    make_run_folder(folder / "run");
    LiveWriter writer(rank_file(folder / "run", 0), full_description(1), full_rank(0), graph);
    EXPECT_EQ(RunReader(folder / "run").steps(), 0);
    for (int step = 0; step < 40; ++step) {
        writer.append(make_step(graph, 0, step, 300));
        const RunReader run(folder / "run");
        EXPECT_TRUE(run.is_alive());
        EXPECT_EQ(run.status(), Status::running);
        ASSERT_EQ(run.steps(), step + 1);
        EXPECT_TRUE(same(read_all(run).back(), make_step(graph, 0, step, 300)));
        ASSERT_EQ(run.remarks().size(), 1U);
        EXPECT_NE(run.remarks()[0].find("still running"), std::string::npos);
    }
    EXPECT_NE(input_error([&] { repair_run(folder / "run", folder / "repaired"); }).find("still being written"),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "repaired"));
    EXPECT_NE(input_error([&] { merge_run(folder / "run"); }).find("still being written"), std::string::npos);
}

TEST(RoundTrip, an_interrupted_run_says_at_which_step) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {37}, Status::interrupted);
    const RunReader run(folder / "run");
    EXPECT_EQ(run.status(), Status::interrupted);
    ASSERT_EQ(run.remarks().size(), 1U);
    EXPECT_EQ(run.remarks()[0], "interrupted at step 37 of 60");
}

TEST(RoundTrip, the_worst_status_of_any_rank_counts) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    write_run(folder / "run", graph, {2, 2});
    std::filesystem::remove(rank_file(folder / "run", 1));
    LiveWriter writer(rank_file(folder / "run", 1), full_description(2), full_rank(1), graph);
    writer.set_status(Status::failed);
    writer.close();
    EXPECT_EQ(RunReader(folder / "run").status(), Status::failed);
}

TEST(RoundTrip, steps_that_only_some_ranks_finished_are_counted_apart) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {5, 3, 4}, Status::interrupted);
    const RunReader run(folder / "run");
    EXPECT_EQ(run.steps(), 3);
    EXPECT_EQ(run.most_steps(), 5);
    EXPECT_EQ(read_all(run).size(), 9U);
}

TEST(RoundTrip, a_missing_rank_is_named) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {2, 2, 2, 2});
    std::filesystem::remove(rank_file(folder / "run", 0));
    std::filesystem::remove(rank_file(folder / "run", 2));
    const RunReader run(folder / "run");
    ASSERT_EQ(run.remarks().size(), 1U);
    EXPECT_NE(run.remarks()[0].find("rank 0, 2"), std::string::npos) << run.remarks()[0];
    EXPECT_EQ(run.ranks().size(), 2U);
    EXPECT_EQ(read_all(run).size(), 4U);
    const RunState state = read_state(folder / "run");
    EXPECT_EQ(state.ranks_present, 2);
    EXPECT_EQ(state.ranks, 4);
}

TEST(RoundTrip, rank_files_of_different_runs_and_copies_are_refused) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    write_run(folder / "run", graph, {2, 2});
    std::filesystem::copy_file(rank_file(folder / "run", 1), rank_file(folder / "run", 7));
    EXPECT_NE(input_error([&] { RunReader(folder / "run"); }).find("rank 1 twice"), std::string::npos);
    std::filesystem::remove(rank_file(folder / "run", 7));
    auto other = full_description(2);
    other.series_text = "{}";
    LiveWriter(rank_file(folder / "run", 7), other, full_rank(7), graph).close();
    EXPECT_NE(input_error([&] { RunReader(folder / "run"); }).find("different runs"), std::string::npos);
}

TEST(RoundTrip, more_files_than_may_be_open_at_once_are_read) {
    const TemporaryFolder folder;
    auto graph = every_op_kind();
    write_run(folder / "run", graph, std::vector<int>(300, 2), Status::complete, 3);
    const RunReader run(folder / "run");
    EXPECT_EQ(read_all(run).size(), 600U);
    EXPECT_LT(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}), 100);
}

TEST(RoundTrip, a_writer_refuses_steps_out_of_order_and_of_other_ranks) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    LiveWriter writer(rank_file(folder.path(), 3), full_description(4), full_rank(3), graph);
    EXPECT_THROW(writer.append(make_step(graph, 3, 1, 3)), LogicError);
    EXPECT_THROW(writer.append(make_step(graph, 2, 0, 3)), LogicError);
    auto stranger = make_step(graph, 3, 0, 3);
    stranger.spans[1].op = graph.op_count();
    EXPECT_THROW(writer.append(stranger), LogicError);
    writer.append(make_step(graph, 3, 0, 3));
    EXPECT_EQ(writer.steps_written(), 1);
    EXPECT_THROW(LiveWriter(rank_file(folder.path(), 3), full_description(4), full_rank(3), graph), RuntimeError);
    writer.close();
    EXPECT_EQ(RunReader(rank_file(folder.path(), 3)).steps(), 1);
}

}  // namespace
}  // namespace lockstep::record::test
