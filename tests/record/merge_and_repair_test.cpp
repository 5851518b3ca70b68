// One compressed file says what the rank files said.
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

namespace fs = std::filesystem;

void expect_same(const std::vector<step::StepRecord>& a, const std::vector<step::StepRecord>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same(a[i], b[i])) << i;
}

TEST(Merge, a_merged_run_equals_the_rank_files_record_by_record) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    write_run(folder / "run", graph, {70, 70, 70}, Status::complete, 500);
    const auto before = read_all(RunReader(folder / "run"));
    merge_run(folder / "run");
    const RunReader run(folder / "run");
    EXPECT_TRUE(run.is_merged());
    EXPECT_EQ(run.status(), Status::complete);
    EXPECT_EQ(run.steps(), 70);
    EXPECT_TRUE(run.remarks().empty());
    EXPECT_EQ(to_text(run.run()), to_text(full_description(3)));
    EXPECT_EQ(graph_to_text(run.graph()), graph_to_text(graph));
    expect_same(read_all(run), before);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder / "run"), {}), 1);
    merge_run(folder / "run");  // once more changes nothing
    expect_same(read_all(RunReader(folder / "run")), before);
}

TEST(Merge, clock_offsets_are_added_once_whatever_the_file_is_called) {
    const TemporaryFolder folder;
    const auto graph = every_op_kind();
    make_run_folder(folder / "run");
    LiveWriter writer(rank_file(folder / "run", 1), full_description(2), full_rank(1), graph);
    writer.append(make_step(graph, 1, 0, 3));
    writer.close();
    // rank 1's clock is 1,000,000,007 ns behind rank 0's; its step 0 begins at 1000 ns.
    const Nanoseconds begin{1'000'001'007};
    EXPECT_EQ(read_all(RunReader(folder / "run")).at(0).begin, begin);
    merge_run(folder / "run");
    EXPECT_EQ(read_all(RunReader(folder / "run")).at(0).begin, begin);
    fs::rename(folder / "run" / "run.h5", folder / "renamed.h5");
    EXPECT_EQ(read_all(RunReader(folder / "renamed.h5")).at(0).begin, begin);
    repair_run(folder / "renamed.h5", folder / "again");
    EXPECT_EQ(read_all(RunReader(folder / "again")).at(0).begin, begin);
}

TEST(Merge, a_failed_merge_leaves_the_rank_files) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {3, 3});
    const auto before = read_all(RunReader(folder / "run"));
    fs::create_directories(folder / "run" / "run.h5.unfinished" / "in the way");
    EXPECT_THROW(merge_run(folder / "run"), RuntimeError);
    expect_same(read_all(RunReader(folder / "run")), before);
    EXPECT_FALSE(fs::exists(folder / "run" / "run.h5"));
}

TEST(Merge, killed_before_it_removed_the_rank_files_counts_and_the_next_removes_them) {
    const TemporaryFolder folder;
    const fs::path run = folder / "run";
    write_run(run, every_op_kind(), {5, 3});
    fs::copy(run, folder / "rank files");
    merge_run(run);
    const auto merged = read_all(RunReader(run));
    // What a kill between the renaming and the removing leaves.
    fs::copy(folder / "rank files", run);
    {
        const RunReader reader(run);
        EXPECT_TRUE(reader.is_merged());
        EXPECT_EQ(reader.leftover_files().size(), 2U);
        ASSERT_EQ(reader.remarks().size(), 1U);
        EXPECT_NE(reader.remarks()[0].find("killed merge left 2"), std::string::npos) << reader.remarks()[0];
        expect_same(read_all(reader), merged);
    }
    EXPECT_EQ(read_state(run).leftover_files, 2);
    const RepairReport report = repair_run(run, folder / "new");
    EXPECT_EQ(report.leftover_files, 2);
    expect_same(read_all(RunReader(folder / "new")), merged);
    EXPECT_TRUE(fs::exists(rank_file(run, 1)));
    merge_run(run);
    EXPECT_EQ(std::distance(fs::directory_iterator(run), {}), 1);
    EXPECT_EQ(read_state(run).leftover_files, 0);
    expect_same(read_all(RunReader(run)), merged);
}

TEST(Merge, rank_files_of_another_run_beside_it_are_not_removed) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {2});
    merge_run(folder / "run");
    write_run(folder / "other", every_op_kind(), {2, 2});
    fs::copy(rank_file(folder / "other", 1), rank_file(folder / "run", 1));
    EXPECT_NE(input_error([&] { merge_run(folder / "run"); }).find("different runs"), std::string::npos);
    EXPECT_TRUE(fs::exists(rank_file(folder / "run", 1)));
}

TEST(Merge, equal_runs_give_equal_tables) {
    const TemporaryFolder folder;
    for (const char* name : {"one", "two"}) write_run(folder / name, every_op_kind(), {5, 3});
    // Not only the tables: no byte says when or where the files were made. (Rank files note their writer's process,
    // which here is the same.)
    for (const int rank : {0, 1})
        EXPECT_TRUE(read_bytes(rank_file(folder / "one", rank)) == read_bytes(rank_file(folder / "two", rank)));
    for (const char* name : {"one", "two"}) merge_run(folder / name);
    EXPECT_TRUE(read_bytes(folder / "one" / "run.h5") == read_bytes(folder / "two" / "run.h5"));
    expect_same(read_all(RunReader(folder / "one")), read_all(RunReader(folder / "two")));
}

TEST(Merge, a_merged_file_is_smaller) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {200}, Status::complete, 300);
    const auto before = fs::file_size(rank_file(folder / "run", 0));
    merge_run(folder / "run");
    EXPECT_LT(fs::file_size(folder / "run" / "run.h5") * 3, before);
}

TEST(Repair, the_steps_that_all_ranks_finished_are_copied_and_nothing_is_edited) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {5, 3}, Status::running);
    const auto before = read_all(RunReader(folder / "run"));
    const auto bytes = read_bytes(rank_file(folder / "run", 0));
    const RepairReport report = repair_run(folder / "run", folder / "new");
    EXPECT_EQ(report.output, folder / "new");
    EXPECT_EQ(report.ranks, 2);
    EXPECT_EQ(report.steps, 3);
    EXPECT_EQ(report.discarded_steps, 2);
    const RunReader repaired(folder / "new");
    EXPECT_EQ(repaired.status(), Status::interrupted);
    expect_same(read_all(repaired), before);
    EXPECT_EQ(read_bytes(rank_file(folder / "run", 0)), bytes);
    EXPECT_NE(input_error([&] { repair_run(folder / "run", folder / "new"); }).find("not empty"), std::string::npos);
}

TEST(Repair, a_run_that_ended_by_itself_keeps_its_status) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {3}, Status::failed);
    repair_run(folder / "run", folder / "new");
    EXPECT_EQ(RunReader(folder / "new").status(), Status::failed);
}

TEST(State, of_a_run_says_how_far_it_is) {
    const TemporaryFolder folder;
    write_run(folder / "run", every_op_kind(), {5, 3}, Status::interrupted);
    RunState state = read_state(folder / "run");
    EXPECT_EQ(state.status, Status::interrupted);
    EXPECT_EQ(state.steps, 3);
    EXPECT_EQ(state.planned_steps, 60);
    EXPECT_EQ(state.ranks_present, 2);
    EXPECT_FALSE(state.is_alive);
    EXPECT_FALSE(state.is_merged);
    merge_run(folder / "run");
    state = read_state(folder / "run" / "run.h5");
    EXPECT_EQ(state.steps, 3);
    EXPECT_TRUE(state.is_merged);
}

}  // namespace
}  // namespace lockstep::record::test
