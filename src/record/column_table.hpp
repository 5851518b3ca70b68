// A small table for people and scripts: columns of equal length written as one compound dataset.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "record/hdf5_handle.hpp"

namespace lockstep::record {

struct TableColumn {
    std::string name;
    std::string unit;  ///< "1", "ns", "byte", "flop" or "" for text
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
};

/// Writes the columns as compound rows, contiguous, with attributes field_names and field_units. Texts have fixed
/// length in the file.
void write_columns(hid_t file, const std::string& name, const std::vector<TableColumn>& columns,
                   const std::string& file_name);

/// Attributes that give each field of a compound dataset its unit: two arrays of equal length.
void write_units(hid_t dataset, const std::vector<std::pair<std::string, std::string>>& units,
                 const std::string& file_name);

}  // namespace lockstep::record
