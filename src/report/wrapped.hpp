// Long texts broken into lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::report {

/// `text` in lines of at most `width` characters, broken at spaces; the first line starts with `first`, the others with
/// as many spaces. A word longer than a line stays whole.
std::string wrapped(std::string_view text, std::string_view first, std::size_t width = 100);

/// A heading and one wrapped item a line ("  - ..."); nothing when there are none.
std::string wrapped_list(std::string_view heading, const std::vector<std::string>& items);

}  // namespace lockstep::report
