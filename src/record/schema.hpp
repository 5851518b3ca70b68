// The tables of a recorded run: row types, names and their HDF5 form. Version 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/hdf5_handle.hpp"
#include "record/run_description.hpp"
#include "step/graph.hpp"

namespace lockstep::record {

constexpr int schema_version = 1;
constexpr hsize_t rows_per_chunk = 4096;

/// A row of /events: one op of one step of one rank. Times in nanoseconds since the run's epoch.
struct EventRow {
    std::int64_t step;
    std::int32_t rank;
    std::int32_t op;
    std::int32_t micro_batch;
    std::int32_t stream;
    std::int8_t kind;   ///< enumeration of the kinds of the graph's ops
    std::int8_t phase;  ///< enumeration step::Phase
    std::int64_t ready_ns, start_ns, end_ns;
    std::int64_t bytes;  ///< least memory traffic, or the buffer of a collective
};

/// A row of /steps: one step of one rank, and where its events are.
struct StepRow {
    std::int64_t step;
    std::int32_t rank;
    std::int64_t begin_ns, end_ns;
    double loss;
    std::int64_t first_event, events;
};

/// Kinds of the graph's ops in order of first use; an event's `kind` is an index into it.
std::vector<std::string> op_kinds(const step::StepGraph& graph);
/// Of each op, by number.
std::vector<std::int8_t> kind_of_ops(const step::StepGraph& graph, const std::vector<std::string>& kinds);

/// Compound types in memory order; in the file they are the same.
Handle event_type(const std::vector<std::string>& kinds);
Handle step_type();

/// An extendible, chunked one-dimensional table; `deflate` 0 leaves it uncompressed.
Handle make_table(hid_t file, const std::string& name, hid_t type, hsize_t rows, int deflate,
                  const std::string& file_name);

/// Units of the columns of /events and /steps, as attributes.
void write_row_units(hid_t events, hid_t steps, const std::string& file_name);

void write_attribute(hid_t object, const std::string& name, const std::string& text, const std::string& file_name);
void write_attribute(hid_t object, const std::string& name, std::int64_t value, const std::string& file_name);
/// A scalar text dataset of fixed length.
void write_text(hid_t file, const std::string& name, const std::string& text, const std::string& file_name);
/// At most 256 MiB. Throws InputError when it is not there or not such a text.
std::string read_text(hid_t file, const std::string& name, const std::string& file_name);

/// Everything a file holds besides steps and events: schema version, description, texts with sha256, provenance, the
/// graph for people and exact. `ranks` has one entry in a rank's file and all of them in a merged one.
void write_header(hid_t file, const RunDescription& run, const std::vector<RankDescription>& ranks,
                  const step::StepGraph& graph, const std::string& file_name);

}  // namespace lockstep::record
