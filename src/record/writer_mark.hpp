// Which process writes a live file, so that a reader can tell whether it still lives.
#pragma once

#include <filesystem>

#include "record/hdf5_handle.hpp"

namespace lockstep::record {

/// Notes this process in the file: attributes writer_host, writer_pid and writer_start (of the process, in the kernel's
/// ticks since boot: process numbers are given out again).
void mark_writer(hid_t file, const std::string& file_name);

/// On the writer's host: the same process still exists. Seen from another host: the file changed within two minutes.
bool is_writer_alive(hid_t file, const std::filesystem::path& path);

}  // namespace lockstep::record
