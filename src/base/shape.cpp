#include "base/shape.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents, ", ")); }

}  // namespace lockstep
