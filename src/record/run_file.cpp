#include "record/run_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "record/attributes.hpp"
#include "record/device_rows.hpp"
#include "record/hdf5_handle.hpp"
#include "record/live_writer.hpp"
#include "record/run_reader.hpp"
#include "record/schema.hpp"
#include "record/seal.hpp"

namespace lockstep::record {

namespace {

namespace fs = std::filesystem;

constexpr int deflate_level = 4;
constexpr std::size_t rows_per_write = 16 * merged_rows_per_chunk;

/// Appends to a table in large pieces.
template <class Row>
class BufferedTable {
public:
    BufferedTable(Handle table, Handle type, std::string file)
        : table_(std::move(table)), type_(std::move(type)), file_(std::move(file)) {}

    void add(const Row& row) {
        rows_.push_back(row);
        if (rows_.size() == rows_per_write) flush();
    }
    std::int64_t size() const { return static_cast<std::int64_t>(written_ + rows_.size()); }
    void flush() {
        if (rows_.empty()) return;
        const hsize_t count = rows_.size();
        const hsize_t first = written_;
        const hsize_t after = first + count;
        check(H5Dset_extent(table_.get(), &after), "grow a table", file_);
        const Handle in_file(H5Dget_space(table_.get()), H5Sclose);
        H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr);
        const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
        check(H5Dwrite(table_.get(), type_.get(), in_memory.get(), in_file.get(), H5P_DEFAULT, rows_.data()),
              "write rows", file_);
        written_ = after;
        rows_.clear();
    }
    hid_t id() const { return table_.get(); }

private:
    Handle table_, type_;
    std::string file_;
    hsize_t written_ = 0;
    std::vector<Row> rows_;
};

void write_cell(hid_t file, const char* name, hid_t type, const void* value, const std::string& file_name) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle cell(
        check(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, untimed(H5P_DATASET_CREATE).get(), H5P_DEFAULT),
              std::string("make ") + name, file_name),
        H5Dclose);
    check(H5Dwrite(cell.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), std::string("write ") + name, file_name);
}

void copy_steps(const RunReader& run, hid_t file, const std::string& name) {
    const auto kinds = op_kinds(run.graph());
    const auto ops = op_columns(run.graph(), kinds);
    BufferedTable<EventRow> events(
        make_table(file, "/events", event_type(kinds).get(), merged_rows_per_chunk, deflate_level, name),
        event_type(kinds), name);
    BufferedTable<StepRow> steps(
        make_table(file, "/steps", step_type().get(), merged_rows_per_chunk, deflate_level, name), step_type(), name);
    write_row_units(events.id(), steps.id(), name);
    std::optional<BufferedTable<DeviceRow>> devices;
    if (std::any_of(run.ranks().begin(), run.ranks().end(), [](const auto& rank) { return rank.is_sampled; })) {
        devices.emplace(
            make_table(file, device_table, device_row_type().get(), merged_rows_per_chunk, deflate_level, name),
            device_row_type(), name);
        describe_device_columns(devices->id(), name);
    }
    std::vector<EventRow> rows;
    run.for_each(0, run.steps(), [&](const step::StepRecord& record) {
        rows.clear();
        for (const auto& span : record.spans) rows.push_back(event_row(record, span, ops));
        steps.add(step_row(record, events.size(), rows));
        for (const auto& row : rows) events.add(row);
        if (devices) devices->add(device_row(record));
    });
    events.flush();
    steps.flush();
    if (devices) devices->flush();
}

/// Returns when the file or folder is on the disk: only then may what it was made from be removed.
void sync_to_disk(const fs::path& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_synced = descriptor >= 0 && fsync(descriptor) == 0;
    const int reason = errno;
    if (descriptor >= 0) close(descriptor);
    if (!is_synced)
        throw RuntimeError(fmt::format("{}: can't be brought to the disk ({}); the rank files are kept", path.string(),
                                       std::strerror(reason)));
}

/// Writes `run` as one file: beside its place first, then renamed, so that a file of that name is always whole.
void write_merged(const RunReader& run, Status status, const fs::path& target) {
    const fs::path unfinished = target.string() + ".unfinished";
    const std::string name = unfinished.string();
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    try {
        const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
        const Handle creation = untimed(H5P_FILE_CREATE);
        H5Pset_userblock(creation.get(), seal_bytes);
        Handle file(check(H5Fcreate(name.c_str(), H5F_ACC_EXCL, creation.get(), access.get()), "make the file", name),
                    H5Fclose);
        write_header(file.get(), run.run(), run.ranks(), run.graph(), name);
        write_attribute(file.get(), merged_attribute, std::int64_t{1}, name);
        copy_steps(run, file.get(), name);
        const std::int64_t steps = run.steps();
        const auto status_value = static_cast<std::int32_t>(status);
        write_cell(file.get(), "/steps_complete", H5T_NATIVE_INT64, &steps, name);
        write_cell(file.get(), "/status", status_type().get(), &status_value, name);
        check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "write the file's end", name);
        file.reset();
        write_seal(unfinished);
        sync_to_disk(unfinished);
    } catch (...) {
        fs::remove(unfinished, ignored);
        throw;
    }
    std::error_code error;
    fs::rename(unfinished, target, error);
    if (error)
        throw RuntimeError(fmt::format("{}: can't be given its name {} ({}); the rank files are kept", name,
                                       target.string(), error.message()));
    sync_to_disk(fs::absolute(target).parent_path());
}

void require_ended(const RunReader& run, const fs::path& folder) {
    if (run.is_alive())
        throw InputError(
            fmt::format("{}: still being written; wait until it ends, or analyse it as it is", folder.string()));
}

}  // namespace

void merge_run(const fs::path& folder) {
    std::vector<fs::path> sources;
    {
        const RunReader run(folder);
        if (run.is_merged()) {
            sources = run.leftover_files();
        } else {
            require_ended(run, folder);
            write_merged(run, run.status(), folder / "run.h5");
            for (const auto& rank : run.ranks()) sources.push_back(rank_file(folder, rank.rank));
        }
    }
    std::error_code error;
    for (const auto& source : sources) fs::remove(source, error);
}

RepairReport repair_run(const fs::path& folder, const fs::path& output) {
    const RunReader run(folder);
    require_ended(run, folder);
    make_empty_folder(output);
    write_merged(run, run.status() == Status::running ? Status::interrupted : run.status(), output / "run.h5");
    return {output, static_cast<int>(run.ranks().size()), run.steps(), run.most_steps() - run.steps(),
            static_cast<int>(run.leftover_files().size())};
}

RunState read_state(const fs::path& folder_or_file) {
    const RunReader run(folder_or_file);
    RunState state;
    state.status = run.status();
    state.is_alive = run.is_alive();
    state.steps = run.steps();
    state.planned_steps = run.run().planned_steps;
    state.ranks_present = static_cast<int>(run.ranks().size());
    state.ranks = is_executed(run.run().origin) ? run.run().ranks : state.ranks_present;
    state.is_merged = run.is_merged();
    state.leftover_files = static_cast<int>(run.leftover_files().size());
    return state;
}

}  // namespace lockstep::record
