#include "record/recorded_file.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "base/error.hpp"
#include "record/field_text.hpp"
#include "record/graph_text.hpp"
#include "record/run_fields.hpp"

namespace lockstep::record {

namespace {

/// Rows of one table that are believed: more than any run of this tool can have made.
constexpr hsize_t most_rows = hsize_t{1} << 40U;
constexpr hsize_t most_steps = 100'000'000;
constexpr std::int64_t most_events_of_a_step = 100'000'000;

hsize_t rows_of(hid_t table) {
    const Handle space(H5Dget_space(table), H5Sclose);
    hsize_t rows = 0;
    if (!space || H5Sget_simple_extent_ndims(space.get()) != 1 ||
        H5Sget_simple_extent_dims(space.get(), &rows, nullptr) != 1)
        return most_rows;
    return rows;
}

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

std::optional<std::int64_t> integer_attribute(hid_t file, const char* name) {
    if (H5Aexists(file, name) <= 0) return std::nullopt;
    const Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
    std::int64_t value = 0;
    if (!attribute || H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0) return std::nullopt;
    return value;
}

}  // namespace

RecordedFile::RecordedFile(const std::filesystem::path& path) : path_(path), name_(path.string()) {
    silence_hdf5();
    open();
    read_description();
    read_steps();
}

void RecordedFile::refuse(const std::string& what) const {
    throw InputError(
        fmt::format("{}: {}. Don't run h5clear -s on it, which can destroy a file whose writer was killed; 'lockstep "
                    "repair' copies what is finished",
                    name_, what));
}

void RecordedFile::open() {
    if (!std::filesystem::is_regular_file(path_)) throw InputError(fmt::format("{}: no such file", name_));
    file_ = {H5Fopen(name_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
    was_closed_ = static_cast<bool>(file_);
    if (!file_) file_ = {H5Fopen(name_.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT), H5Fclose};
    if (!file_) refuse("not a readable HDF5 file (" + hdf5_reason() + ")");
    const auto version = integer_attribute(file_.get(), "schema_version");
    if (!version) refuse("not a run of lockstep (it has no schema_version)");
    if (*version > schema_version || *version < 1)
        throw InputError(
            fmt::format("{}: schema version {} is newer than this lockstep reads ({}); use the version that wrote it",
                        name_, *version, schema_version));
}

std::int64_t RecordedFile::read_cell(const char* name) const {
    const Handle cell(H5Dopen2(file_.get(), name, H5P_DEFAULT), H5Dclose);
    std::int64_t value = 0;
    if (!cell) refuse(std::string(name) + " is missing");
    const Handle space(H5Dget_space(cell.get()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.get()) != 1 ||
        H5Dread(cell.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0)
        refuse(std::string(name) + " can't be read");
    return value;
}

void RecordedFile::read_description() {
    run_ = from_text<RunDescription>(read_text(file_.get(), "/description", name_), name_);
    const config::Node ranks = config::parse_text(read_text(file_.get(), "/ranks", name_), name_);
    for (const auto& node : ranks.items()) {
        Reading reading{node, name_};
        fields(reading, ranks_.emplace_back());
    }
    if (ranks_.empty()) refuse("it describes no rank");
    const std::int64_t status = read_cell("/status");
    if (status < 0 || status > static_cast<int>(Status::failed))
        refuse(fmt::format("its status {} is unknown", status));
    status_ = static_cast<Status>(status);
}

void RecordedFile::read_steps() {
    const std::int64_t complete = read_cell("/steps_complete");
    const Handle table(H5Dopen2(file_.get(), "/steps", H5P_DEFAULT), H5Dclose);
    events_ = {H5Dopen2(file_.get(), "/events", H5P_DEFAULT), H5Dclose};
    if (!table || !events_) refuse("its tables are missing");
    const hsize_t rows = rows_of(table.get());
    event_rows_ = rows_of(events_.get());
    const bool is_merged = ranks_.size() > 1;
    const hsize_t wanted = is_merged && was_closed_ ? rows : static_cast<hsize_t>(std::max<std::int64_t>(complete, 0));
    if (complete < 0 || wanted > rows || rows > most_steps || event_rows_ >= most_rows)
        refuse("its watermark and its tables disagree");
    steps_.resize(wanted);
    if (wanted == 0) return;
    const Handle type = step_type();
    const Handle in_file(H5Dget_space(table.get()), H5Sclose);
    const hsize_t first = 0;
    H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, &first, nullptr, &wanted, nullptr);
    const Handle in_memory(H5Screate_simple(1, &wanted, nullptr), H5Sclose);
    if (H5Dread(table.get(), type.get(), in_memory.get(), in_file.get(), H5P_DEFAULT, steps_.data()) < 0)
        refuse("its steps can't be read (" + hdf5_reason() + ")");
}

bool RecordedFile::has_living_writer() const {
    if (was_closed_) return false;
    const auto pid = integer_attribute(file_.get(), "writer_pid");
    if (pid && ranks_.front().host == host_name()) return kill(static_cast<pid_t>(*pid), 0) == 0 || errno == EPERM;
    const auto age = std::filesystem::file_time_type::clock::now() - std::filesystem::last_write_time(path_);
    return age < std::chrono::minutes(2);
}

step::StepGraph RecordedFile::read_graph() const {
    return graph_from_text(read_text(file_.get(), "/graph/text", name_), name_);
}

void RecordedFile::prepare_events(const step::StepGraph& graph) { event_row_ = event_type(op_kinds(graph)); }

step::StepRecord RecordedFile::read_step(const StepRow& row, Nanoseconds offset, std::int64_t multiplicity,
                                         std::int32_t op_count) {
    const bool is_inside = row.first_event >= 0 && row.events >= 0 && row.events <= most_events_of_a_step &&
                           static_cast<hsize_t>(row.first_event) + static_cast<hsize_t>(row.events) <= event_rows_;
    if (!is_inside) refuse(fmt::format("the events of step {} are outside the table", row.step));
    buffer_.resize(static_cast<std::size_t>(row.events));
    if (row.events > 0) {
        const auto first = static_cast<hsize_t>(row.first_event);
        const auto count = static_cast<hsize_t>(row.events);
        const Handle in_file(H5Dget_space(events_.get()), H5Sclose);
        H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr);
        const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
        if (H5Dread(events_.get(), event_row_.get(), in_memory.get(), in_file.get(), H5P_DEFAULT, buffer_.data()) < 0)
            refuse(fmt::format("the events of step {} can't be read ({})", row.step, hdf5_reason()));
    }
    step::StepRecord record;
    record.step = row.step;
    record.rank = row.rank;
    record.multiplicity = multiplicity;
    record.begin = Nanoseconds{row.begin_ns} + offset;
    record.end = Nanoseconds{row.end_ns} + offset;
    record.loss = row.loss;
    record.spans.reserve(buffer_.size());
    for (const EventRow& event : buffer_) {
        if (event.op < 0 || event.op >= op_count)
            refuse(fmt::format("step {} names op {} of {}", row.step, event.op, op_count));
        record.spans.push_back({event.op, event.micro_batch, event.stream, Nanoseconds{event.ready_ns} + offset,
                                Nanoseconds{event.start_ns} + offset, Nanoseconds{event.end_ns} + offset});
    }
    return record;
}

}  // namespace lockstep::record
