// Two ways of reading a key that every file of machine/ shares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"

namespace lockstep::machine {

/// The required key read by `read` (such as &Object::bandwidth); a value of 0 is reported, since nothing moves at it.
template <class Q>
Q positive(config::Object& object, std::string_view key, Q (config::Object::*read)(std::string_view)) {
    const std::size_t before = object.diagnostics().count();
    const Q value = (object.*read)(key);
    if (value.value <= 0 && object.diagnostics().count() == before) object.error(key, "must be above 0");
    return value;
}

/// The texts of an optional list.
inline std::vector<std::string> texts_if_any(config::Object& object, std::string_view key) {
    return object.has(key) ? object.texts(key) : std::vector<std::string>{};
}

}  // namespace lockstep::machine
