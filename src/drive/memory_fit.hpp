// Whether a step fits a device, and what would.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "step/liveness.hpp"

namespace lockstep::drive {

/// Memory of the rank that needs most when a pass takes so many samples.
using MemoryOfMicroBatch = std::function<step::MemoryUse(std::int64_t micro_batch)>;

/// The largest micro-batch, up to `most`, that fits; 0 when not even one sample does. Memory must not fall with the
/// micro-batch.
std::int64_t largest_micro_batch(const MemoryOfMicroBatch& memory, Bytes capacity, std::int64_t most = 1 << 16);

/// "does not fit: needs 391.3 GiB a rank (parameters 41.0, ...), a100 has 80.0 GiB; the largest micro-batch that fits
/// is 2" or "...; not even a micro-batch of 1 fits: ..."; empty when it fits or the capacity isn't known.
std::string why_too_large(const step::MemoryUse& use, Bytes capacity, const std::string& device,
                          const MemoryOfMicroBatch& memory);

}  // namespace lockstep::drive
