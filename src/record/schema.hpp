// The tables of a recorded run: row types, names and their HDF5 form. Version 1. What was added to it since is left
// out by readers that don't know it and taken as not there in files that don't have it: the table of device_rows.hpp
// and some fields of the descriptions (run_fields.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/hdf5_handle.hpp"
#include "record/run_description.hpp"
#include "step/graph.hpp"
#include "step/span.hpp"

namespace lockstep::record {

constexpr int schema_version = 1;
/// Of merged files, which are compressed by the chunk.
constexpr hsize_t merged_rows_per_chunk = 4096;
/// Of live files, which grow by whole chunks (see live_writer.hpp for the figures).
constexpr hsize_t live_events_per_chunk = 4096;
constexpr hsize_t live_steps_per_chunk = 512;
/// The `step` of rows of a live file that nothing was written to yet.
constexpr std::int64_t no_step = -1;
/// Attribute of a merged file: its times are rank 0's already.
constexpr const char* merged_attribute = "is_merged";

/// A row of /events: one op of one step of one rank. Times in nanoseconds since the run's epoch.
struct EventRow {
    std::int64_t step;
    std::int32_t rank;
    std::int32_t op;
    std::int32_t micro_batch;
    std::int32_t stream;
    std::int8_t kind;                ///< enumeration of the kinds of the graph's ops
    std::int8_t phase;               ///< enumeration step::Phase
    std::array<std::int8_t, 6> gap;  ///< no column; zero, so that equal runs give equal bytes
    std::int64_t ready_ns, start_ns, end_ns;
    std::int64_t bytes;  ///< least memory traffic, or the buffer of a collective
};
static_assert(sizeof(EventRow) == 64);

/// A row of /steps: one step of one rank, and where its events are.
struct StepRow {
    std::int64_t step;
    std::int32_t rank;
    std::int32_t gap;  ///< no column; zero
    std::int64_t begin_ns, end_ns;
    double loss;
    std::int64_t first_event, events;
    std::uint64_t checksum;
};
static_assert(sizeof(StepRow) == 64);

/// Of a step's events and then its row without the last column, as words of 8 bytes: word i of each of the two goes
/// to lane i mod 4 as h = (h ^ word) * 0x100000001b3 (FNV-1a); the four lanes are then mixed into one in the same way.
/// All begin at 0xcbf29ce484222325. A change of one word always changes it.
std::uint64_t checksum(const StepRow& row, std::span<const EventRow> events);
/// The same of any bytes.
std::uint64_t checksum(std::span<const std::byte> bytes);

/// Kinds of the graph's ops in order of first use; an event's `kind` is an index into it.
std::vector<std::string> op_kinds(const step::StepGraph& graph);

/// What an event of an op says of it, by op number.
struct OpColumns {
    std::vector<std::int8_t> kind, phase;
    std::vector<std::int64_t> bytes;
};
OpColumns op_columns(const step::StepGraph& graph, const std::vector<std::string>& kinds);
/// Rows of a step of `op_columns`' graph. Throws LogicError for a span of an op that isn't in it.
EventRow event_row(const step::StepRecord& step, const step::Span& span, const OpColumns& ops);
/// `events` are the step's rows, from row `first_event` of the table on.
StepRow step_row(const step::StepRecord& step, std::int64_t first_event, std::span<const EventRow> events);

/// Compound types in memory order; in the file they are the same.
Handle event_type(const std::vector<std::string>& kinds);
Handle step_type();
/// The enumeration of /status: h5dump shows its words.
Handle status_type();

/// An extendible, chunked one-dimensional table of no rows; `deflate` 0 leaves it uncompressed.
Handle make_table(hid_t file, const std::string& name, hid_t type, hsize_t rows_per_chunk, int deflate,
                  const std::string& file_name);

/// A table of no rows and uncompressed that grows by chunks, whose rows are `fill` until they are written.
Handle make_live_table(hid_t file, const std::string& name, hid_t type, hsize_t rows_per_chunk, const void* fill,
                       const std::string& file_name);

/// Units of the columns of /events and /steps, as attributes.
void write_row_units(hid_t events, hid_t steps, const std::string& file_name);

/// A scalar text dataset of fixed length; attribute "checksum" is that of its bytes, filled up with zeros to words.
void write_text(hid_t file, const std::string& name, const std::string& text, const std::string& file_name);
/// At most 256 MiB. Throws InputError when it is not there, not such a text or not as it was written.
std::string read_text(hid_t file, const std::string& name, const std::string& file_name);

/// Everything a file holds besides steps and events: schema version, description, texts with sha256, provenance, the
/// graph for people and exact. `ranks` has one entry in a rank's file and all of them in a merged one.
void write_header(hid_t file, const RunDescription& run, const std::vector<RankDescription>& ranks,
                  const step::StepGraph& graph, const std::string& file_name);

}  // namespace lockstep::record
