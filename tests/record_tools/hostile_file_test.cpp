// Files that are cut, foreign or written by someone who means harm are refused; the reader never crashes on them.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "record/attributes.hpp"
#include "record/device_rows.hpp"
#include "record/field_text.hpp"
#include "record/live_writer.hpp"
#include "record/run_fields.hpp"
#include "record/run_file.hpp"
#include "record/run_reader.hpp"
#include "record/sample_run.hpp"
#include "record/schema.hpp"

namespace lockstep::record::test {
namespace {

namespace fs = std::filesystem;

/// Opens a finished rank's file for changes.
class Hostile : public testing::Test {
protected:
    Hostile() { write_run(folder_ / "run", every_op_kind(), {4}); }

    fs::path file() const { return rank_file(folder_ / "run", 0); }
    void change(const std::function<void(hid_t)>& f) const {
        const Handle opened(check(H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open", file()), H5Fclose);
        f(opened.get());
    }
    /// Changes one row of a table in place.
    template <class Row>
    void change_row(const char* table, hid_t type, hsize_t number, const std::function<void(Row&)>& f) const {
        change([&](hid_t opened) {
            const Handle dataset(check(H5Dopen2(opened, table, H5P_DEFAULT), "open", table), H5Dclose);
            const Handle place(H5Dget_space(dataset.get()), H5Sclose);
            const hsize_t one = 1;
            H5Sselect_hyperslab(place.get(), H5S_SELECT_SET, &number, nullptr, &one, nullptr);
            const Handle memory(H5Screate_simple(1, &one, nullptr), H5Sclose);
            Row row{};
            check(H5Dread(dataset.get(), type, memory.get(), place.get(), H5P_DEFAULT, &row), "read", table);
            f(row);
            check(H5Dwrite(dataset.get(), type, memory.get(), place.get(), H5P_DEFAULT, &row), "write", table);
        });
    }
    void change_step(hsize_t number, const std::function<void(StepRow&)>& f) const {
        change_row<StepRow>("/steps", step_type().get(), number, f);
    }
    void change_event(const std::function<void(EventRow&)>& f) const {
        change_row<EventRow>("/events", event_type(op_kinds(every_op_kind())).get(), 35, f);
    }
    void replace_text(const char* name, const std::string& text) const {
        change([&](hid_t opened) {
            check(H5Ldelete(opened, name, H5P_DEFAULT), "delete", name);
            write_text(opened, name, text, name);
        });
    }
    void set_attribute(const char* name, std::int64_t value) const {
        change([&](hid_t opened) {
            H5Adelete(opened, name);
            write_attribute(opened, name, value, name);
        });
    }
    /// Why reading all of it is refused.
    std::string refusal() const {
        return input_error([&] { read_all(RunReader(folder_ / "run")); });
    }
    void expect_refusal(const std::string& words) const {
        const std::string why = refusal();
        EXPECT_NE(why.find(words), std::string::npos) << why;
        EXPECT_NE(why.find("rank-00000.h5"), std::string::npos) << why;
    }

    TemporaryFolder folder_;
};

TEST_F(Hostile, a_file_nobody_changed_is_read) { EXPECT_EQ(refusal(), ""); }

TEST_F(Hostile, a_newer_schema_is_refused_and_says_which) {
    set_attribute("schema_version", 2);
    expect_refusal("schema version 2");
}
TEST_F(Hostile, schema_0_and_no_schema_are_refused) {
    set_attribute("schema_version", 0);
    expect_refusal("schema version 0");
    change([](hid_t opened) { H5Adelete(opened, "schema_version"); });
    expect_refusal("no schema_version");
}
TEST_F(Hostile, events_outside_the_table_are_refused) {
    for (const std::int64_t events : {std::int64_t{91}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
        change_step(1, [&](StepRow& row) { row.events = events; });
        expect_refusal("events of step 1");
    }
    change_step(1, [&](StepRow& row) { row.events = 30; });
    for (const std::int64_t first : {std::int64_t{-1}, std::int64_t{91}, INT64_MAX, INT64_MIN}) {
        change_step(1, [&](StepRow& row) { row.first_event = first; });
        expect_refusal("events of step 1");
    }
}
TEST_F(Hostile, steps_out_of_order_or_of_another_rank_are_refused) {
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{2}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
        change_step(1, [&](StepRow& row) { row.step = step; });
        expect_refusal("out of order");
    }
    change_step(1, [&](StepRow& row) { row.step = 1, row.rank = 1; });
    expect_refusal("out of order");
}
TEST_F(Hostile, times_that_overflow_are_refused) {
    for (const std::int64_t time : {INT64_MAX, INT64_MIN}) {
        change_event([&](EventRow& row) { row.start_ns = time; });
        expect_refusal("times of step 1");
    }
    change_step(2, [&](StepRow& row) { row.end_ns = INT64_MAX; });
    expect_refusal("times of step 2");
}
TEST_F(Hostile, device_samples_that_were_changed_are_refused) {
    const std::vector<std::function<void(DeviceRow&)>> changes{
        [](DeviceRow& row) { row.step = 2; }, [](DeviceRow& row) { row.step = 1, row.rank = 1; },
        [](DeviceRow& row) { row.rank = 0, row.sm_clock_hz = 1e9; }, [](DeviceRow& row) { row.time_ns = INT64_MAX; }};
    for (const auto& one : changes) {
        change_row<DeviceRow>(device_table, device_row_type().get(), 1, one);
        expect_refusal("device sample of step 1 of rank 0");
    }
    change([](hid_t opened) { H5Ldelete(opened, device_table, H5P_DEFAULT); });
    expect_refusal("samples of its device are missing");
}
TEST_F(Hostile, a_file_of_before_devices_were_sampled_is_read_without_their_samples) {
    const auto before = read_all(RunReader(file()));
    change([](hid_t opened) { H5Ldelete(opened, device_table, H5P_DEFAULT); });
    std::string ranks = "[" + to_text(full_rank(0)) + "]";
    ranks.erase(ranks.find(R"(,"is_sampled")"), ranks.rfind('}') - ranks.find(R"(,"is_sampled")"));
    replace_text("/ranks", ranks);
    auto expected = before;
    for (auto& record : expected) record.device.reset();
    const auto after = read_all(RunReader(file()));
    ASSERT_EQ(after.size(), expected.size());
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same(after[i], expected[i])) << i;
}
TEST_F(Hostile, ops_streams_and_micro_batches_outside_the_graph_are_refused) {
    const std::vector<std::function<void(EventRow&)>> changes{
        [](EventRow& row) { row.op = every_op_kind().op_count(); }, [](EventRow& row) { row.op = -1; },
        [](EventRow& row) { row.op = 0, row.stream = 2; },          [](EventRow& row) { row.stream = -1; },
        [](EventRow& row) { row.stream = 0, row.micro_batch = 2; }, [](EventRow& row) { row.micro_batch = INT32_MIN; }};
    for (const auto& one : changes) {
        change_event(one);
        expect_refusal("its graph doesn't have");
    }
}
TEST_F(Hostile, a_watermark_beyond_the_table_or_below_zero_is_refused) {
    for (const std::int64_t complete : {std::int64_t{5}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
        change([&](hid_t opened) {
            const Handle cell(H5Dopen2(opened, "/steps_complete", H5P_DEFAULT), H5Dclose);
            H5Dwrite(cell.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &complete);
        });
        expect_refusal("watermark");
    }
}
TEST_F(Hostile, tables_that_pretend_to_be_huge_take_no_memory) {
    change([](hid_t opened) {
        // As tables whose chunks take no place before they are written.
        for (const char* name : {"/steps", "/events"}) {
            const Handle type(std::string(name) == "/steps" ? step_type() : event_type(op_kinds(every_op_kind())));
            H5Ldelete(opened, name, H5P_DEFAULT);
            const Handle table = make_table(opened, name, type.get(), 64, 0, "x");
            const hsize_t rows = 3'000'000'000'000;
            H5Dset_extent(table.get(), &rows);
        }
        const std::int64_t complete = 3'000'000'000'000;
        const Handle cell(H5Dopen2(opened, "/steps_complete", H5P_DEFAULT), H5Dclose);
        H5Dwrite(cell.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &complete);
    });
    EXPECT_NE(refusal(), "");
}
TEST_F(Hostile, texts_that_are_huge_missing_or_no_texts_are_refused) {
    replace_text("/description", "{}");
    expect_refusal("'origin' is missing");
    change([](hid_t opened) {
        H5Ldelete(opened, "/description", H5P_DEFAULT);
        // 1 GiB that was never written: it takes no place in the file.
        const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
        H5Tset_size(type.get(), std::size_t{1} << 30U);
        const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
        const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_LATE);
        H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
        const Handle huge(
            check(H5Dcreate2(opened, "/description", type.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                  "make", "huge"),
            H5Dclose);
    });
    expect_refusal("256 MiB");
    change([](hid_t opened) { H5Ldelete(opened, "/description", H5P_DEFAULT); });
    expect_refusal("/description is missing");
    change([](hid_t opened) { write_text(opened, "/description", std::string(10'000, '['), "x"); });
    expect_refusal("bracket");
}
TEST_F(Hostile, a_description_of_no_rank_or_of_two_is_refused) {
    replace_text("/ranks", "[]");
    expect_refusal("no rank");
    replace_text("/ranks", "{}");
    expect_refusal("no rank");
}
TEST_F(Hostile, a_table_of_other_columns_is_refused) {
    change([](hid_t opened) {
        H5Ldelete(opened, "/events", H5P_DEFAULT);
        make_table(opened, "/events", H5T_NATIVE_DOUBLE, 64, 0, "x");
        const Handle table(H5Dopen2(opened, "/events", H5P_DEFAULT), H5Dclose);
        const hsize_t rows = 120;
        H5Dset_extent(table.get(), &rows);
    });
    expect_refusal("can't be read");
}
TEST_F(Hostile, foreign_files_are_refused) {
    for (const std::string text :
         {"", "x", "name: no run\n", "\x89HDF\r\n\x1a\n", "\x89HDF\r\n\x1a\n\x03\x08\x08\x01"}) {
        write_bytes(file(), {text.begin(), text.end()});
        expect_refusal("not a readable HDF5 file");
    }
    fs::remove(file());
    { const Handle other(H5Fcreate(file().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose); }
    expect_refusal("not a run of lockstep");
    fs::remove(file());
    fs::create_directories(file());
    expect_refusal("no such file");
    fs::remove(file());
    EXPECT_NE(refusal().find("no run in this folder"), std::string::npos);
    EXPECT_NE(input_error([&] { RunReader(folder_ / "nothing"); }).find("no such run"), std::string::npos);
}

/// Reads what may be anything; only InputError may come of it.
void read_or_refuse(const fs::path& path) {
    input_error([&] {
        const RunReader run(path);
        read_all(run);
    });
}

TEST_F(Hostile, files_cut_anywhere_are_read_or_refused) {
    const auto whole = read_bytes(file());
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> lengths{0, 1, 8, 47, 48, 96, 512, whole.size() - 1};
    for (int i = 0; i < 300; ++i) lengths.push_back(random() % whole.size());
    for (const std::size_t length : lengths) {
        write_bytes(file(), {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
        read_or_refuse(folder_ / "run");
    }
    write_bytes(file(), whole);
    merge_run(folder_ / "run");
    const fs::path merged = folder_ / "run" / "run.h5";
    const auto whole_merged = read_bytes(merged);
    for (int i = 0; i < 100; ++i) {
        const auto length = static_cast<std::ptrdiff_t>(random() % whole_merged.size());
        write_bytes(merged, {whole_merged.begin(), whole_merged.begin() + length});
        read_or_refuse(folder_ / "run");
    }
}

/// What reading a file came to, in a process of its own: HDF5 may crash, or wait for ever.
enum class Outcome { same, refused, differs, unnamed, died };

/// Reads `path`: same when each step that it gives is that step of `original`. Files of ranks give fewer steps when the
/// changed byte is in the number of finished ones.
Outcome read_apart(const fs::path& path, const std::vector<step::StepRecord>& original) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        Outcome outcome = Outcome::same;
        try {
            const auto records = read_all(RunReader(path));
            if (records.size() > original.size()) outcome = Outcome::differs;
            for (std::size_t i = 0; i < records.size() && outcome == Outcome::same; ++i)
                if (!same(records[i], original[i])) outcome = Outcome::differs;
        } catch (const InputError& error) {
            outcome = std::string(error.what()).find(path.string()) != std::string::npos ? Outcome::refused
                                                                                         : Outcome::unnamed;
        }
        _exit(static_cast<int>(outcome));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) < static_cast<int>(Outcome::died)
               ? static_cast<Outcome>(WEXITSTATUS(status))
               : Outcome::died;
}

/// Changes one byte at each of `places` in turn; returns how many of them were refused.
int change_bytes(const fs::path& path, const std::vector<std::size_t>& places, std::mt19937& random) {
    const auto original = read_all(RunReader(path));
    auto bytes = read_bytes(path);
    int refused = 0;
    for (const std::size_t place : places) {
        const char before = bytes[place];
        bytes[place] = static_cast<char>(before ^ static_cast<char>(1 + random() % 255));
        write_bytes(path, bytes);
        const Outcome outcome = read_apart(path, original);
        EXPECT_TRUE(outcome == Outcome::same || outcome == Outcome::refused)
            << path.filename() << " byte " << place << ": outcome " << static_cast<int>(outcome);
        refused += outcome == Outcome::refused ? 1 : 0;
        bytes[place] = before;
    }
    write_bytes(path, bytes);
    return refused;
}

TEST_F(Hostile, a_byte_changed_anywhere_is_refused_or_changes_nothing) {
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> places;
    const std::size_t size = fs::file_size(file());
    // Most of the file is rows that are not used: two of three changes are before them.
    for (int i = 0; i < 150; ++i)
        places.push_back(random() % (i % 3 == 0 ? size : std::min<std::size_t>(size, 36'000)));
    EXPECT_GT(change_bytes(file(), places, random), 30);
    merge_run(folder_ / "run");
    const fs::path merged = folder_ / "run" / "run.h5";
    places = {0, 8, 100, 200, 511};
    for (int i = 0; i < 100; ++i) places.push_back(random() % fs::file_size(merged));
    EXPECT_EQ(change_bytes(merged, places, random), 105);
}

}  // namespace
}  // namespace lockstep::record::test
