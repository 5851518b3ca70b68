// Arithmetic of the test double's reductions: all ranks' elements in rank order, so that all get equal bits.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <span>

namespace lockstep::nccl_double {

/// Bytes of an element; 0 of an unknown type.
std::size_t size_of(ncclDataType_t type);
const char* name_of(ncclDataType_t type);
const char* name_of(ncclRedOp_t op);

/// out[i] = op over r of in[r][i], `count` elements. Floating point numbers are added as float or double. `out` may be
/// none of the inputs.
void reduce(std::span<const std::byte* const> in, std::byte* out, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op);

}  // namespace lockstep::nccl_double
