// Blocks of device and pinned memory. A block ends (up to 255 bytes) before a page that nothing may touch, and its
// addresses are never used again: reading or writing past it, or after it was freed, ends the process with a line that
// says so.
#pragma once

#include <cstddef>
#include <optional>

namespace lockstep::gpu_double {

struct Block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    int device = 0;
    bool pinned = false;  ///< of the host
    bool freed = false;
    int number = 0;  ///< counts allocations from 1

    bool holds(const void* address, std::size_t count) const {
        const auto* first = static_cast<const std::byte*>(address);
        return first >= begin && first <= begin + bytes && count <= static_cast<std::size_t>(begin + bytes - first);
    }
};

/// The live block that the address is in.
std::optional<Block> find_block(const void* address);

}  // namespace lockstep::gpu_double
