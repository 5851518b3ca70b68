// Where in one arena each of many tenants lies, so that those that live at the same time are apart.
#pragma once

#include <cstdint>
#include <vector>

#include "step/life.hpp"

namespace lockstep::step {

/// Takes the same bytes whenever it lives.
struct Tenant {
    std::int64_t bytes = 0;
    Life life;
};

struct Packing {
    std::vector<std::int64_t> offset;  ///< by tenant: a sum of other tenants' bytes
    std::int64_t bytes = 0;            ///< the highest end
};

/// The most bytes that live at one time: no packing takes less.
std::int64_t live_bytes(const std::vector<Tenant>& tenants);

/// A packing of at most `enough` bytes when one is found, else the smallest of those that were tried. One places
/// tenants one by one, each at the lowest offset that is free while it lives; what comes first fits best. First the
/// largest, or the longest lived, and the like; then, up to `rounds` times, those that ended above live_bytes come
/// earlier than before ("squeaky wheel" optimization, Joslin and Clements 1999). Each is quadratic in the tenants; for
/// very many, fewer are tried. Equal input gives equal offsets.
Packing pack(const std::vector<Tenant>& tenants, std::int64_t enough, int rounds = 200);

}  // namespace lockstep::step
