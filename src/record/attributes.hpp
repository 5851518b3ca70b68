// Attributes: single numbers and UTF-8 texts at an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/hdf5_handle.hpp"

namespace lockstep::record {

/// A scalar text of variable length, which h5py gives as str. Throws RuntimeError.
void write_attribute(hid_t object, const std::string& name, const std::string& text, const std::string& file_name);
void write_attribute(hid_t object, const std::string& name, std::int64_t value, const std::string& file_name);

/// None when it is not there or of another type.
std::optional<std::int64_t> read_integer(hid_t object, const std::string& name);
std::optional<std::string> read_text_attribute(hid_t object, const std::string& name);

}  // namespace lockstep::record
