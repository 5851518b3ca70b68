#include "record/recorded_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "record/attributes.hpp"
#include "record/field_text.hpp"
#include "record/graph_text.hpp"
#include "record/run_fields.hpp"
#include "record/seal.hpp"
#include "record/writer_mark.hpp"

namespace lockstep::record {

namespace {

/// What is believed of a file: more than any run of this tool can have made.
constexpr hsize_t most_event_rows = hsize_t{1} << 40U;
constexpr std::int64_t most_events_of_a_step = 16'000'000;
constexpr std::int64_t longest_time_ns = std::int64_t{1} << 60U;  // 36 years: sums and differences stay in 64 bits
constexpr hsize_t rows_per_read = 65536;

Handle open_table(hid_t file, const char* name) { return {H5Dopen2(file, name, H5P_DEFAULT), H5Dclose}; }

/// None when it is no one-dimensional table.
std::optional<hsize_t> rows_of(hid_t table) {
    const Handle space(H5Dget_space(table), H5Sclose);
    hsize_t rows = 0;
    if (!space || H5Sget_simple_extent_ndims(space.get()) != 1 ||
        H5Sget_simple_extent_dims(space.get(), &rows, nullptr) != 1)
        return std::nullopt;
    return rows;
}

bool read_rows(hid_t table, hid_t type, hsize_t first, hsize_t count, void* rows) {
    const Handle in_file(H5Dget_space(table), H5Sclose);
    const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
    return H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr) >= 0 &&
           H5Dread(table, type, in_memory.get(), in_file.get(), H5P_DEFAULT, rows) >= 0;
}

bool is_time(std::int64_t ns) { return ns >= -longest_time_ns && ns <= longest_time_ns; }

}  // namespace

RecordedFile::RecordedFile(const std::filesystem::path& path) : path_(path), name_(path.string()) {
    silence_hdf5();
    try {
        const bool was_closed = open();
        read_description();
        read_steps();
        read_devices();
        has_living_writer_ = !was_closed && is_writer_alive(file_.get(), path_);
    } catch (const std::bad_alloc&) { refuse("reading it takes more memory than there is"); }
}

void RecordedFile::refuse(const std::string& what) const {
    throw InputError(
        fmt::format("{}: {}. Don't run h5clear -s on it, which can destroy a file whose writer was killed; 'lockstep "
                    "repair' copies what is finished",
                    name_, what));
}

bool RecordedFile::open() {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path_, error)) throw InputError(fmt::format("{}: no such file", name_));
    seal_ = read_seal(path_);
    if (seal_ == Seal::broken) refuse("not a readable HDF5 file (cut or changed since it was written)");
    file_ = {H5Fopen(name_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
    // A file that this process itself is writing opens normally, as one more handle of it.
    unsigned intent = 0;
    const bool was_closed = file_ && H5Fget_intent(file_.get(), &intent) >= 0 && (intent & H5F_ACC_RDWR) == 0;
    if (!file_) {
        // A reader of a live file tries again what it finds half written, waiting twice as long each time: HDF5's own
        // 100 attempts would sleep for ever on a damaged file, these 25 sleep 34 ms.
        const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_metadata_read_attempts(access.get(), 25);
        file_ = {H5Fopen(name_.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()), H5Fclose};
    }
    if (!file_) refuse("not a readable HDF5 file (" + hdf5_reason() + ")");
    const auto version = read_integer(file_.get(), "schema_version");
    if (!version) refuse("not a run of lockstep (it has no schema_version)");
    if (*version > schema_version || *version < 1)
        throw InputError(
            fmt::format("{}: schema version {} is not one that this lockstep reads (1 to {}); use the version that "
                        "wrote it",
                        name_, *version, schema_version));
    return was_closed;
}

void RecordedFile::require_open() {
    if (file_) return;
    open();
    events_ = open_table(file_.get(), "/events");
    const auto rows = rows_of(events_.get());
    // What was finished when it was opened stays.
    if (!rows || *rows < event_rows_) refuse("its events are gone");
}

void RecordedFile::release() {
    events_.reset();
    file_.reset();
}

template <class T>
T RecordedFile::read_cell(const char* name, hid_t type) const {
    const Handle cell = open_table(file_.get(), name);
    T value = 0;
    if (!cell) refuse(std::string(name) + " is missing");
    const Handle space(H5Dget_space(cell.get()), H5Sclose);
    if (H5Sget_simple_extent_npoints(space.get()) != 1 ||
        H5Dread(cell.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0)
        refuse(std::string(name) + " can't be read");
    return value;
}

void RecordedFile::read_description() {
    run_ = from_text<RunDescription>(read_text(file_.get(), "/description", name_), name_);
    const config::Node ranks = config::parse_text(read_text(file_.get(), "/ranks", name_), name_, recorded_limits);
    for (const auto& node : ranks.items()) {
        Reading reading{node, name_};
        fields(reading, ranks_.emplace_back());
        const RankDescription& rank = ranks_.back();
        if (rank.rank < 0 || rank.multiplicity < 1 || !is_time(rank.clock_offset.count))
            refuse("it describes an impossible rank");
    }
    is_merged_ = read_integer(file_.get(), merged_attribute).value_or(0) == 1;
    if (is_merged_ && seal_ == Seal::none) refuse("a merged file without its first page");
    if (ranks_.empty() || (!is_merged_ && ranks_.size() > 1)) refuse("it describes no rank, or more than one");
    if (run_.ranks < 1 || run_.record_every < 1 || run_.planned_steps < 0 || run_.global_batch < 1)
        refuse("its description is impossible");
    const auto status = read_cell<std::int32_t>("/status", status_type().get());
    if (status < 0 || status > static_cast<int>(Status::failed))
        refuse(fmt::format("its status {} is unknown", status));
    status_ = static_cast<Status>(status);
}

/// Hands over rows one by one; piece by piece, so that a false size is found out before it takes memory.
template <class Row, class F>
void RecordedFile::read_table(hid_t table, hid_t type, hsize_t rows, const F& keep) const {
    std::vector<Row> piece;
    for (hsize_t first = 0; first < rows; first += piece.size()) {
        piece.resize(std::min(rows_per_read, rows - first));
        if (!read_rows(table, type, first, piece.size(), piece.data()))
            refuse("its steps can't be read (" + hdf5_reason() + ")");
        for (const Row& row : piece) keep(row);
    }
}

void RecordedFile::read_steps() {
    // The watermark before the tables: what it counts is in them.
    const std::int64_t complete = read_cell<std::int64_t>("/steps_complete", H5T_NATIVE_INT64);
    const Handle table = open_table(file_.get(), "/steps");
    events_ = open_table(file_.get(), "/events");
    const auto rows = rows_of(table.get());
    const auto event_rows = rows_of(events_.get());
    if (!rows || !event_rows) refuse("its tables are missing");
    event_rows_ = *event_rows;
    const auto counted = static_cast<hsize_t>(std::max<std::int64_t>(complete, 0));
    const hsize_t wanted = is_merged_ ? *rows : counted;
    if (complete < 0 || wanted > *rows || event_rows_ > most_event_rows)
        refuse("its watermark and its tables disagree");
    read_table<StepRow>(table.get(), step_type().get(), wanted, [this](const StepRow& row) {
        check_row(row);
        steps_.push_back(row);
    });
    if (is_merged_ && step_count() != complete) refuse("its watermark and its steps disagree");
    event_rows_ = 0;
    for (const StepRow& row : steps_)
        event_rows_ = std::max(event_rows_, static_cast<hsize_t>(row.first_event + row.events));
}

void RecordedFile::read_devices() {
    if (std::none_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.is_sampled; })) return;
    const Handle table = open_table(file_.get(), device_table);
    const auto rows = rows_of(table.get());
    if (!rows || *rows < steps_.size()) refuse("samples of its device are missing");
    devices_.reserve(steps_.size());
    read_table<DeviceRow>(table.get(), device_row_type().get(), steps_.size(), [this](const DeviceRow& row) {
        const StepRow& step = steps_[devices_.size()];
        if (row.step != step.step || row.rank != step.rank || !is_whole(row) || !is_time(row.time_ns))
            refuse(
                fmt::format("the device sample of step {} of rank {} is not as it was written", step.step, step.rank));
        devices_.push_back(row);
    });
}

void RecordedFile::check_row(const StepRow& row) const {
    const std::int64_t next = step_count();
    const bool is_first = steps_.empty();
    const bool in_order = is_merged_
                              ? row.step == next || (!is_first && row.step == next - 1 && row.rank > steps_.back().rank)
                              : row.step == next && row.rank == ranks_.front().rank;
    if (!in_order)
        refuse(fmt::format("its steps are out of order (step {} of rank {} in place of step {})", row.step, row.rank,
                           next));
    const bool is_inside = row.first_event >= 0 && row.events >= 0 && row.events <= most_events_of_a_step &&
                           static_cast<hsize_t>(row.first_event) + static_cast<hsize_t>(row.events) <= event_rows_;
    if (!is_inside) refuse(fmt::format("the events of step {} are outside the table", row.step));
    if (!is_time(row.begin_ns) || !is_time(row.end_ns))
        refuse(fmt::format("the times of step {} are impossible", row.step));
}

step::StepGraph RecordedFile::read_graph() {
    require_open();
    try {
        return graph_from_text(read_text(file_.get(), "/graph/text", name_), name_);
    } catch (const std::bad_alloc&) { refuse("reading its graph takes more memory than there is"); }
}

void RecordedFile::read_events(const StepRow& row, const step::StepGraph& graph) {
    buffer_.assign(static_cast<std::size_t>(row.events), EventRow{});
    if (!buffer_.empty()) {
        require_open();
        if (!event_row_) event_row_ = event_type(op_kinds(graph));
        if (!read_rows(events_.get(), event_row_.get(), static_cast<hsize_t>(row.first_event), buffer_.size(),
                       buffer_.data()))
            refuse(fmt::format("the events of step {} can't be read ({})", row.step, hdf5_reason()));
    }
    check_events(row, graph);
}

void RecordedFile::check_events(const StepRow& row, const step::StepGraph& graph) const {
    const auto ops = graph.op_count();
    const auto streams = static_cast<std::int32_t>(graph.streams.size());
    for (const EventRow& event : buffer_) {
        const bool is_known = event.op >= 0 && event.op < ops && event.stream >= 0 && event.stream < streams &&
                              event.micro_batch >= 0 && event.micro_batch < graph.micro_batches;
        if (!is_known)
            refuse(fmt::format("step {} names op {}, stream {}, micro-batch {}, which its graph doesn't have", row.step,
                               event.op, event.stream, event.micro_batch));
        if (!is_time(event.ready_ns) || !is_time(event.start_ns) || !is_time(event.end_ns))
            refuse(fmt::format("the times of step {} are impossible", row.step));
    }
    if (checksum(row, buffer_) != row.checksum)
        refuse(fmt::format("step {} of rank {} is not as it was written (its checksum differs)", row.step, row.rank));
}

step::StepRecord RecordedFile::read_step(std::size_t n, Nanoseconds offset, std::int64_t multiplicity,
                                         const step::StepGraph& graph) {
    silence_hdf5();
    const StepRow& row = steps_[n];
    step::StepRecord record;
    try {
        read_events(row, graph);
        record.spans.reserve(buffer_.size());
    } catch (const std::bad_alloc&) { refuse("reading a step takes more memory than there is"); }
    record.step = row.step;
    record.rank = row.rank;
    record.multiplicity = multiplicity;
    record.begin = Nanoseconds{row.begin_ns} + offset;
    record.end = Nanoseconds{row.end_ns} + offset;
    record.loss = row.loss;
    if (!devices_.empty()) record.device = device_sample(devices_[n], offset);
    for (const EventRow& event : buffer_)
        record.spans.push_back({event.op, event.micro_batch, event.stream, Nanoseconds{event.ready_ns} + offset,
                                Nanoseconds{event.start_ns} + offset, Nanoseconds{event.end_ns} + offset});
    return record;
}

}  // namespace lockstep::record
