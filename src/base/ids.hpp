// Indices that cannot be mixed up: an integer with the type of what it points at.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace lockstep {

/// Index into the table of `Tag`s. A default constructed id points nowhere.
template <class Tag>
struct Id {
    std::int32_t value = -1;

    constexpr auto operator<=>(const Id&) const = default;
    constexpr bool is_valid() const { return value >= 0; }
    constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

}  // namespace lockstep

template <class Tag>
struct std::hash<lockstep::Id<Tag>> {
    std::size_t operator()(lockstep::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.value); }
};
