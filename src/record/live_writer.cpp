#include "record/live_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <vector>

#include "base/error.hpp"
#include "record/column_table.hpp"
#include "record/hdf5_handle.hpp"
#include "record/schema.hpp"

namespace lockstep::record {

namespace {

/// A one-element dataset that may change while readers look.
Handle make_cell(hid_t file, const char* name, hid_t type, const void* value, const std::string& file_name) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    Handle cell(check(H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      std::string("make ") + name, file_name),
                H5Dclose);
    check(H5Dwrite(cell.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), std::string("write ") + name, file_name);
    return cell;
}

/// Appends rows to a one-dimensional table.
void append_rows(hid_t table, hid_t type, hsize_t before, hsize_t count, const void* rows,
                 const std::string& file_name) {
    if (count == 0) return;
    const hsize_t after = before + count;
    check(H5Dset_extent(table, &after), "grow a table", file_name);
    const Handle in_file(check(H5Dget_space(table), "see a table's size", file_name), H5Sclose);
    check(H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, &before, nullptr, &count, nullptr), "select rows",
          file_name);
    const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
    check(H5Dwrite(table, type, in_memory.get(), in_file.get(), H5P_DEFAULT, rows), "write rows", file_name);
}

}  // namespace

struct LiveWriter::State {
    std::string name;
    int rank = 0;
    int record_every = 1;
    std::vector<std::int8_t> kinds;
    std::vector<std::int8_t> phases;
    std::vector<std::int64_t> bytes;
    Handle file, event_row, step_row, events, steps, complete, status;
    hsize_t event_rows = 0;
    hsize_t step_rows = 0;
    std::vector<EventRow> rows;  ///< of one step; reused
};

LiveWriter::LiveWriter(const std::filesystem::path& path, const RunDescription& run, const RankDescription& rank,
                       const step::StepGraph& graph)
    : state_(std::make_unique<State>()) {
    silence_hdf5();
    State& s = *state_;
    s.name = path.string();
    s.rank = rank.rank;
    s.record_every = run.record_every;
    const auto kinds = op_kinds(graph);
    s.kinds = kind_of_ops(graph, kinds);
    for (const auto& block : graph.blocks)
        for (const auto& op : block.ops) {
            s.phases.push_back(static_cast<std::int8_t>(op.phase));
            s.bytes.push_back(static_cast<std::int64_t>(op.bytes.value));
        }
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
    s.file = {check(H5Fcreate(s.name.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()), "make the file", s.name),
              H5Fclose};
    write_header(s.file.get(), run, {rank}, graph, s.name);
    write_attribute(s.file.get(), "writer_pid", static_cast<std::int64_t>(getpid()), s.name);
    s.event_row = event_type(kinds);
    s.step_row = step_type();
    s.events = make_table(s.file.get(), "/events", s.event_row.get(), 0, 0, s.name);
    s.steps = make_table(s.file.get(), "/steps", s.step_row.get(), 0, 0, s.name);
    write_row_units(s.events.get(), s.steps.get(), s.name);
    const std::int64_t none = 0;
    const auto running = static_cast<std::int32_t>(Status::running);
    s.complete = make_cell(s.file.get(), "/steps_complete", H5T_NATIVE_INT64, &none, s.name);
    s.status = make_cell(s.file.get(), "/status", H5T_NATIVE_INT32, &running, s.name);
    check(H5Fstart_swmr_write(s.file.get()), "open the file to readers", s.name);
}

LiveWriter::~LiveWriter() = default;
LiveWriter::LiveWriter(LiveWriter&&) noexcept = default;
LiveWriter& LiveWriter::operator=(LiveWriter&&) noexcept = default;

void LiveWriter::append(const step::StepRecord& step) {
    State& s = *state_;
    s.rows.clear();
    if (step.step % s.record_every == 0)
        for (const auto& span : step.spans) {
            const auto op = static_cast<std::size_t>(span.op);
            s.rows.push_back({step.step, step.rank, span.op, span.micro_batch, span.stream, s.kinds.at(op),
                              s.phases.at(op), span.ready.count, span.start.count, span.end.count, s.bytes.at(op)});
        }
    const StepRow row{step.step,
                      step.rank,
                      step.begin.count,
                      step.end.count,
                      step.loss,
                      static_cast<std::int64_t>(s.event_rows),
                      static_cast<std::int64_t>(s.rows.size())};
    append_rows(s.events.get(), s.event_row.get(), s.event_rows, s.rows.size(), s.rows.data(), s.name);
    append_rows(s.steps.get(), s.step_row.get(), s.step_rows, 1, &row, s.name);
    // Data first, then the watermark: a reader that sees step n counted finds all of it.
    check(H5Dflush(s.events.get()), "flush events", s.name);
    check(H5Dflush(s.steps.get()), "flush steps", s.name);
    s.event_rows += s.rows.size();
    ++s.step_rows;
    const auto done = static_cast<std::int64_t>(s.step_rows);
    check(H5Dwrite(s.complete.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &done), "write the watermark",
          s.name);
    check(H5Dflush(s.complete.get()), "flush the watermark", s.name);
}

void LiveWriter::set_status(Status status) {
    State& s = *state_;
    const auto value = static_cast<std::int32_t>(status);
    check(H5Dwrite(s.status.get(), H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "write the status",
          s.name);
    check(H5Dflush(s.status.get()), "flush the status", s.name);
}

std::int64_t LiveWriter::steps_written() const { return static_cast<std::int64_t>(state_->step_rows); }

void LiveWriter::close() {
    State& s = *state_;
    for (Handle* handle : {&s.events, &s.steps, &s.complete, &s.status, &s.event_row, &s.step_row}) handle->reset();
    const hid_t file = s.file.get();
    check(H5Fflush(file, H5F_SCOPE_GLOBAL), "write the file's end", s.name);
    s.file.reset();
}

}  // namespace lockstep::record
