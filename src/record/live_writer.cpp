#include "record/live_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "record/device_rows.hpp"
#include "record/hdf5_handle.hpp"
#include "record/schema.hpp"
#include "record/writer_mark.hpp"

namespace lockstep::record {

namespace {

namespace fs = std::filesystem;

/// A one-element dataset that may change while readers look.
Handle make_cell(hid_t file, const char* name, hid_t type, const void* value, const std::string& file_name) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    Handle cell(
        check(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, untimed(H5P_DATASET_CREATE).get(), H5P_DEFAULT),
              std::string("make ") + name, file_name),
        H5Dclose);
    check(H5Dwrite(cell.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), std::string("write ") + name, file_name);
    return cell;
}

/// A table that grows at its end, by whole chunks: only then HDF5 has metadata to write. Keeps its dataspaces: making
/// them anew costs as much as the writing.
class GrowingTable {
public:
    GrowingTable() = default;
    GrowingTable(Handle table, Handle type, hsize_t rows_per_chunk)
        : table_(std::move(table)), type_(std::move(type)), rows_per_chunk_(rows_per_chunk) {
        in_file_ = {H5Screate_simple(1, &extent_, &unlimited), H5Sclose};
        in_memory_ = {H5Screate_simple(1, &extent_, &unlimited), H5Sclose};
    }

    hid_t id() const { return table_.get(); }
    hsize_t rows() const { return rows_; }

    /// Writes rows after those that are kept; a later write overwrites them unless `keep` was called.
    void write(const void* rows, hsize_t count, const std::string& file_name) {
        if (count == 0) return;
        make_room(rows_ + count, file_name);
        check(H5Sselect_hyperslab(in_file_.get(), H5S_SELECT_SET, &rows_, nullptr, &count, nullptr), "select rows",
              file_name);
        check(H5Sset_extent_simple(in_memory_.get(), 1, &count, &unlimited), "select rows", file_name);
        check(H5Dwrite(table_.get(), type_.get(), in_memory_.get(), in_file_.get(), H5P_DEFAULT, rows), "write rows",
              file_name);
    }
    void keep(hsize_t count) { rows_ += count; }
    /// Cuts off the rows that were never kept.
    void close(const std::string& file_name) {
        if (extent_ > rows_) check(H5Dset_extent(table_.get(), &rows_), "cut a table", file_name);
        for (Handle* handle : {&table_, &type_, &in_file_, &in_memory_}) handle->reset();
    }

private:
    void make_room(hsize_t rows, const std::string& file_name) {
        if (rows <= extent_) return;
        const hsize_t grown = (rows + rows_per_chunk_ - 1) / rows_per_chunk_ * rows_per_chunk_;
        check(H5Dset_extent(table_.get(), &grown), "grow a table", file_name);
        check(H5Dflush(table_.get()), "flush a table", file_name);
        check(H5Sset_extent_simple(in_file_.get(), 1, &grown, &unlimited), "see a table's size", file_name);
        extent_ = grown;
    }

    static constexpr hsize_t unlimited = H5S_UNLIMITED;
    Handle table_, type_, in_file_, in_memory_;
    hsize_t rows_per_chunk_ = 1;
    hsize_t extent_ = 0;
    hsize_t rows_ = 0;
};

/// In the file when it returns: the file's writes of data are not buffered.
void write_cell(const Handle& cell, hid_t type, const void* value, const char* what, const std::string& file_name) {
    check(H5Dwrite(cell.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), std::string("write ") + what, file_name);
}

Handle create_file(const fs::path& path) {
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
    // What a cache of no size can't hold is written where it belongs, at once. (Starting SWMR opens all tables anew,
    // with the file's settings and not their own.)
    H5Pset_cache(access.get(), 0, 0, 0, 1.0);
    H5Pset_sieve_buf_size(access.get(), 0);
    return {check(H5Fcreate(path.c_str(), H5F_ACC_EXCL, untimed(H5P_FILE_CREATE).get(), access.get()), "make the file",
                  path.string()),
            H5Fclose};
}

/// Gives the file its name, unless another has it. A name is given only to files that can be read already.
void publish(const fs::path& unfinished, const fs::path& path) {
    if (link(unfinished.c_str(), path.c_str()) == 0) {
        unlink(unfinished.c_str());
        return;
    }
    // Some file systems have no links.
    const bool can_rename = errno != EEXIST && !fs::exists(path);
    if (can_rename && std::rename(unfinished.c_str(), path.c_str()) == 0) return;
    const int reason = errno;
    unlink(unfinished.c_str());
    throw RuntimeError(
        fmt::format("{}: can't make the file ({}); choose another folder", path.string(), std::strerror(reason)));
}

}  // namespace

struct LiveWriter::State {
    std::string name;
    int rank = 0;
    int record_every = 1;
    OpColumns ops;
    Handle file, complete, status, status_type;
    GrowingTable events, steps, devices;
    bool is_sampled = false;
    std::vector<EventRow> rows;  ///< of one step; reused
};

LiveWriter::LiveWriter(const fs::path& path, const RunDescription& run, const RankDescription& rank,
                       const step::StepGraph& graph)
    : state_(std::make_unique<State>()) {
    silence_hdf5();
    if (run.record_every < 1)
        throw InputError(fmt::format("record_every is {}; record every k-th step, k at least 1", run.record_every));
    State& s = *state_;
    s.name = path.string();
    s.rank = rank.rank;
    s.record_every = run.record_every;
    const auto kinds = op_kinds(graph);
    s.ops = op_columns(graph, kinds);
    const fs::path unfinished = s.name + ".unfinished";
    s.file = create_file(unfinished);
    try {
        const hid_t file = s.file.get();
        write_header(file, run, {rank}, graph, s.name);
        mark_writer(file, s.name);
        const EventRow no_event{.step = no_step};
        const StepRow no_row{.step = no_step};
        s.events = {make_live_table(file, "/events", event_type(kinds).get(), live_events_per_chunk, &no_event, s.name),
                    event_type(kinds), live_events_per_chunk};
        s.steps = {make_live_table(file, "/steps", step_type().get(), live_steps_per_chunk, &no_row, s.name),
                   step_type(), live_steps_per_chunk};
        write_row_units(s.events.id(), s.steps.id(), s.name);
        s.is_sampled = rank.is_sampled;
        if (s.is_sampled) {
            const DeviceRow no_sample{.step = no_step};
            s.devices = {
                make_live_table(file, device_table, device_row_type().get(), live_steps_per_chunk, &no_sample, s.name),
                device_row_type(), live_steps_per_chunk};
            describe_device_columns(s.devices.id(), s.name);
        }
        s.status_type = record::status_type();
        const std::int64_t none = 0;
        const auto running = static_cast<std::int32_t>(Status::running);
        s.complete = make_cell(file, "/steps_complete", H5T_NATIVE_INT64, &none, s.name);
        s.status = make_cell(file, "/status", s.status_type.get(), &running, s.name);
        check(H5Fstart_swmr_write(file), "open the file to readers", s.name);
        publish(unfinished, path);
    } catch (...) {
        unlink(unfinished.c_str());
        throw;
    }
}

LiveWriter::~LiveWriter() = default;
LiveWriter::LiveWriter(LiveWriter&&) noexcept = default;
LiveWriter& LiveWriter::operator=(LiveWriter&&) noexcept = default;

void LiveWriter::append(const step::StepRecord& step) {
    silence_hdf5();
    State& s = *state_;
    if (step.step != steps_written() || step.rank != s.rank)
        throw LogicError(fmt::format("step {} of rank {} written to {} after {} steps of rank {}", step.step, step.rank,
                                     s.name, steps_written(), s.rank));
    if (step.device && !s.is_sampled)
        throw LogicError(fmt::format("{}: the state of a device that is not among what is recorded", s.name));
    s.rows.clear();
    if (step.step % s.record_every == 0)
        for (const auto& span : step.spans) s.rows.push_back(event_row(step, span, s.ops));
    const StepRow row = step_row(step, static_cast<std::int64_t>(s.events.rows()), s.rows);
    // Data first, then the watermark: a reader that sees step n counted finds all of it.
    s.events.write(s.rows.data(), s.rows.size(), s.name);
    s.steps.write(&row, 1, s.name);
    if (s.is_sampled) {
        const DeviceRow device = device_row(step);
        s.devices.write(&device, 1, s.name);
    }
    const std::int64_t done = steps_written() + 1;
    write_cell(s.complete, H5T_NATIVE_INT64, &done, "the watermark", s.name);
    s.events.keep(s.rows.size());
    s.steps.keep(1);
    if (s.is_sampled) s.devices.keep(1);
}

void LiveWriter::set_status(Status status) {
    silence_hdf5();
    const auto value = static_cast<std::int32_t>(status);
    write_cell(state_->status, state_->status_type.get(), &value, "the status", state_->name);
}

std::int64_t LiveWriter::steps_written() const { return static_cast<std::int64_t>(state_->steps.rows()); }

void LiveWriter::close() {
    silence_hdf5();
    State& s = *state_;
    s.events.close(s.name);
    s.steps.close(s.name);
    if (s.is_sampled) s.devices.close(s.name);
    for (Handle* handle : {&s.complete, &s.status, &s.status_type}) handle->reset();
    check(H5Fflush(s.file.get(), H5F_SCOPE_GLOBAL), "write the file's end", s.name);
    s.file.reset();
}

}  // namespace lockstep::record
