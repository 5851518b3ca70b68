#include "record/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.hpp"
#include "record/attributes.hpp"
#include "record/column_table.hpp"

namespace lockstep::record {

namespace {

Handle enum_type(const std::vector<std::string>& names) {
    Handle type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto value = static_cast<std::int8_t>(i);
        H5Tenum_insert(type.get(), names[i].c_str(), &value);
    }
    return type;
}

std::vector<std::string> phase_names() {
    std::vector<std::string> names;
    for (const auto phase : {step::Phase::input, step::Phase::forward, step::Phase::backward,
                             step::Phase::gradient_sync, step::Phase::optimizer})
        names.emplace_back(step::to_string(phase));
    return names;
}

Handle text_type(std::size_t size) {
    Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), size);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    return type;
}

Handle new_table(hid_t file, const std::string& name, hid_t type, hid_t creation, const std::string& file_name) {
    const hsize_t rows = 0;
    const hsize_t unlimited = H5S_UNLIMITED;
    const Handle space(check(H5Screate_simple(1, &rows, &unlimited), "size table " + name, file_name), H5Sclose);
    return {check(H5Dcreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, creation, H5P_DEFAULT),
                  "make table " + name, file_name),
            H5Dclose};
}

constexpr const char* checksum_attribute = "checksum";
/// FNV-1a by words of 8 bytes, the last one filled up with zeros; four in turn, so that the processor need not wait for
/// each product.
class Hash {
public:
    void add(const void* data, std::size_t bytes) {
        const char* place = static_cast<const char*>(data);
        std::size_t i = 0;
        for (; i + sizeof lanes_ <= bytes; i += sizeof lanes_)
            for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
                mix(lanes_[lane], place + i + lane * sizeof(std::uint64_t), sizeof(std::uint64_t));
        for (std::size_t lane = 0; i < bytes; i += sizeof(std::uint64_t), ++lane)
            mix(lanes_[lane], place + i, std::min(sizeof(std::uint64_t), bytes - i));
    }
    std::uint64_t value() const {
        std::uint64_t h = begin;
        for (const std::uint64_t lane : lanes_) h = (h ^ lane) * prime;
        return h;
    }

private:
    static void mix(std::uint64_t& h, const char* place, std::size_t bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, place, bytes);
        h = (h ^ word) * prime;
    }
    static constexpr std::uint64_t begin = 0xcbf29ce484222325U;
    static constexpr std::uint64_t prime = 0x100000001b3U;
    std::array<std::uint64_t, 4> lanes_{begin, begin, begin, begin};
};

std::int64_t checksum_of(const std::string& text) {
    return static_cast<std::int64_t>(checksum(std::as_bytes(std::span(text))));
}

}  // namespace

std::vector<std::string> op_kinds(const step::StepGraph& graph) {
    std::vector<std::string> kinds;
    for (const auto& block : graph.blocks)
        for (const auto& op : block.ops) {
            std::string kind(step::kind_name(op));
            if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(std::move(kind));
        }
    if (kinds.empty()) kinds.emplace_back("none");
    if (kinds.size() > 127) throw LogicError("more than 127 kinds of op");
    return kinds;
}

OpColumns op_columns(const step::StepGraph& graph, const std::vector<std::string>& kinds) {
    OpColumns columns;
    for (const auto& block : graph.blocks)
        for (const auto& op : block.ops) {
            columns.kind.push_back(
                static_cast<std::int8_t>(std::find(kinds.begin(), kinds.end(), step::kind_name(op)) - kinds.begin()));
            columns.phase.push_back(static_cast<std::int8_t>(op.phase));
            // The graph may be a stranger's: NaN and what no integer holds become 0 and the largest that fits.
            const double bytes = op.bytes.value;
            columns.bytes.push_back(bytes > 0 ? static_cast<std::int64_t>(std::min(bytes, 0x1p62)) : 0);
        }
    return columns;
}

EventRow event_row(const step::StepRecord& step, const step::Span& span, const OpColumns& ops) {
    if (span.op < 0 || static_cast<std::size_t>(span.op) >= ops.kind.size())
        throw LogicError(fmt::format("a span of op {} of a graph of {}", span.op, ops.kind.size()));
    const auto op = static_cast<std::size_t>(span.op);
    return {step.step,     step.rank, span.op,          span.micro_batch, span.stream,    ops.kind[op],
            ops.phase[op], {},        span.ready.count, span.start.count, span.end.count, ops.bytes[op]};
}

StepRow step_row(const step::StepRecord& step, std::int64_t first_event, std::span<const EventRow> events) {
    StepRow row{step.step,
                step.rank,
                0,
                step.begin.count,
                step.end.count,
                step.loss,
                first_event,
                static_cast<std::int64_t>(events.size()),
                0};
    row.checksum = checksum(row, events);
    return row;
}

std::uint64_t checksum(const StepRow& row, std::span<const EventRow> events) {
    Hash hash;
    hash.add(events.data(), events.size_bytes());
    hash.add(&row, offsetof(StepRow, checksum));
    return hash.value();
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
    Hash hash;
    hash.add(bytes.data(), bytes.size());
    return hash.value();
}

Handle event_type(const std::vector<std::string>& kinds) {
    const Handle kind = enum_type(kinds);
    const Handle phase = enum_type(phase_names());
    Handle type(H5Tcreate(H5T_COMPOUND, sizeof(EventRow)), H5Tclose);
    const auto add = [&](const char* name, std::size_t offset, hid_t member) {
        H5Tinsert(type.get(), name, offset, member);
    };
    add("step", offsetof(EventRow, step), H5T_NATIVE_INT64);
    add("rank", offsetof(EventRow, rank), H5T_NATIVE_INT32);
    add("op", offsetof(EventRow, op), H5T_NATIVE_INT32);
    add("micro_batch", offsetof(EventRow, micro_batch), H5T_NATIVE_INT32);
    add("stream", offsetof(EventRow, stream), H5T_NATIVE_INT32);
    add("kind", offsetof(EventRow, kind), kind.get());
    add("phase", offsetof(EventRow, phase), phase.get());
    add("ready_ns", offsetof(EventRow, ready_ns), H5T_NATIVE_INT64);
    add("start_ns", offsetof(EventRow, start_ns), H5T_NATIVE_INT64);
    add("end_ns", offsetof(EventRow, end_ns), H5T_NATIVE_INT64);
    add("bytes", offsetof(EventRow, bytes), H5T_NATIVE_INT64);
    return type;
}

Handle step_type() {
    Handle type(H5Tcreate(H5T_COMPOUND, sizeof(StepRow)), H5Tclose);
    const auto add = [&](const char* name, std::size_t offset, hid_t member) {
        H5Tinsert(type.get(), name, offset, member);
    };
    add("step", offsetof(StepRow, step), H5T_NATIVE_INT64);
    add("rank", offsetof(StepRow, rank), H5T_NATIVE_INT32);
    add("begin_ns", offsetof(StepRow, begin_ns), H5T_NATIVE_INT64);
    add("end_ns", offsetof(StepRow, end_ns), H5T_NATIVE_INT64);
    add("loss", offsetof(StepRow, loss), H5T_NATIVE_DOUBLE);
    add("first_event", offsetof(StepRow, first_event), H5T_NATIVE_INT64);
    add("events", offsetof(StepRow, events), H5T_NATIVE_INT64);
    add("checksum", offsetof(StepRow, checksum), H5T_NATIVE_UINT64);
    return type;
}

Handle status_type() {
    Handle type(H5Tenum_create(H5T_NATIVE_INT32), H5Tclose);
    for (std::int32_t value = 0; value <= static_cast<std::int32_t>(Status::failed); ++value)
        H5Tenum_insert(type.get(), std::string(to_string(static_cast<Status>(value))).c_str(), &value);
    return type;
}

Handle make_table(hid_t file, const std::string& name, hid_t type, hsize_t rows_per_chunk, int deflate,
                  const std::string& file_name) {
    const Handle creation = untimed(H5P_DATASET_CREATE);
    H5Pset_chunk(creation.get(), 1, &rows_per_chunk);
    if (deflate > 0) {
        H5Pset_shuffle(creation.get());
        H5Pset_deflate(creation.get(), static_cast<unsigned>(deflate));
    }
    return new_table(file, name, type, creation.get(), file_name);
}

Handle make_live_table(hid_t file, const std::string& name, hid_t type, hsize_t rows_per_chunk, const void* fill,
                       const std::string& file_name) {
    const Handle creation = untimed(H5P_DATASET_CREATE);
    H5Pset_chunk(creation.get(), 1, &rows_per_chunk);
    H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_value(creation.get(), type, fill);
    return new_table(file, name, type, creation.get(), file_name);
}

void write_row_units(hid_t events, hid_t steps, const std::string& file_name) {
    write_units(events,
                {{"step", "1"},
                 {"rank", "1"},
                 {"op", "1"},
                 {"micro_batch", "1"},
                 {"stream", "1"},
                 {"kind", ""},
                 {"phase", ""},
                 {"ready_ns", "ns"},
                 {"start_ns", "ns"},
                 {"end_ns", "ns"},
                 {"bytes", "byte"}},
                file_name);
    write_units(steps,
                {{"step", "1"},
                 {"rank", "1"},
                 {"begin_ns", "ns"},
                 {"end_ns", "ns"},
                 {"loss", "1"},
                 {"first_event", "1"},
                 {"events", "1"},
                 {"checksum", "1"}},
                file_name);
}

void write_text(hid_t file, const std::string& name, const std::string& text, const std::string& file_name) {
    const Handle type = text_type(text.size() + 1);
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle dataset(check(H5Dcreate2(file, name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                          untimed(H5P_DATASET_CREATE).get(), H5P_DEFAULT),
                               "make " + name, file_name),
                         H5Dclose);
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()), "write " + name, file_name);
    write_attribute(dataset.get(), checksum_attribute, checksum_of(text), file_name);
}

std::string read_text(hid_t file, const std::string& name, const std::string& file_name) {
    constexpr std::size_t largest = std::size_t{256} << 20U;
    const auto refuse = [&](const std::string& what) {
        throw InputError(fmt::format("{}: {} {}; the file is damaged or not lockstep's", file_name, name, what));
    };
    const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset) refuse("is missing");
    const Handle stored(H5Dget_type(dataset.get()), H5Tclose);
    const Handle space(H5Dget_space(dataset.get()), H5Sclose);
    const std::size_t size = H5Tget_size(stored.get());
    if (H5Tget_class(stored.get()) != H5T_STRING || H5Tis_variable_str(stored.get()) != 0 ||
        H5Sget_simple_extent_npoints(space.get()) != 1)
        refuse("is not a text");
    if (size > largest) refuse("is larger than 256 MiB");
    std::string text(size, '\0');
    const Handle type = text_type(size);
    if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0)
        refuse("can't be read (" + hdf5_reason() + ")");
    text.resize(std::min(text.find('\0'), text.size()));
    if (read_integer(dataset.get(), checksum_attribute) != checksum_of(text))
        refuse("is not as it was written (its checksum differs)");
    return text;
}

}  // namespace lockstep::record
