// Whether bytes are UTF-8 text at all, asked before any parser sees them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::config {

/// The first byte that isn't text: line and column (in bytes) from 1, and what is wrong with it.
struct TextFault {
    int line = 0;
    int column = 0;
    std::string reason;
};

/// None when all of `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF) without
/// control characters other than tab, line feed and carriage return.
std::optional<TextFault> find_text_fault(std::string_view text);

}  // namespace lockstep::config
