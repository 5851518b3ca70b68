// A merged file begins with a page that says what the rest of it must be: what was damaged never reaches HDF5, which
// can wait or crash on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::record {

/// Size of the page: HDF5's user block, which every HDF5 reader skips.
constexpr std::uint64_t seal_bytes = 512;

/// Writes length and SHA-256 of what follows the first `seal_bytes` bytes of a closed file into them, as text. Throws
/// RuntimeError.
void write_seal(const std::filesystem::path& file);

enum class Seal {
    none,    ///< the file begins as plain HDF5: a rank's
    whole,   ///< all bytes are as they were when it was sealed
    broken,  ///< cut or changed, or no file of HDF5's
};
/// Reads the whole file when it is sealed (about 1 s a GB). Throws InputError when it can't be read.
Seal read_seal(const std::filesystem::path& file);

}  // namespace lockstep::record
