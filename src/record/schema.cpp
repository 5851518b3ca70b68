#include "record/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/error.hpp"
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

std::vector<std::int8_t> kind_of_ops(const step::StepGraph& graph, const std::vector<std::string>& kinds) {
    std::vector<std::int8_t> result;
    for (const auto& block : graph.blocks)
        for (const auto& op : block.ops)
            result.push_back(
                static_cast<std::int8_t>(std::find(kinds.begin(), kinds.end(), step::kind_name(op)) - kinds.begin()));
    return result;
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
    return type;
}

Handle make_table(hid_t file, const std::string& name, hid_t type, hsize_t rows, int deflate,
                  const std::string& file_name) {
    const hsize_t unlimited = H5S_UNLIMITED;
    const Handle space(check(H5Screate_simple(1, &rows, &unlimited), "size table " + name, file_name), H5Sclose);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const hsize_t chunk = rows_per_chunk;
    H5Pset_chunk(creation.get(), 1, &chunk);
    if (deflate > 0) {
        H5Pset_shuffle(creation.get());
        H5Pset_deflate(creation.get(), static_cast<unsigned>(deflate));
    }
    return {check(H5Dcreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                  "make table " + name, file_name),
            H5Dclose};
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
                 {"events", "1"}},
                file_name);
}

void write_attribute(hid_t object, const std::string& name, const std::string& text, const std::string& file_name) {
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), H5T_VARIABLE);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle attribute(check(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                                 "make attribute " + name, file_name),
                           H5Aclose);
    const char* pointer = text.c_str();
    check(H5Awrite(attribute.get(), type.get(), &pointer), "write attribute " + name, file_name);
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value, const std::string& file_name) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle attribute(
        check(H5Acreate2(object, name.c_str(), H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT),
              "make attribute " + name, file_name),
        H5Aclose);
    check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), "write attribute " + name, file_name);
}

void write_text(hid_t file, const std::string& name, const std::string& text, const std::string& file_name) {
    const Handle type = text_type(text.size() + 1);
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle dataset(
        check(H5Dcreate2(file, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
              "make " + name, file_name),
        H5Dclose);
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()), "write " + name, file_name);
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
    return text;
}

}  // namespace lockstep::record
