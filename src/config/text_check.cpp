#include "config/text_check.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace lockstep::config {

namespace {

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f; }

/// Bytes of the well-formed character at the start of `text`; 0 when it is malformed.
std::size_t character_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
    std::uint32_t code = lead & (0xffu >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0u) != 0x80u) return 0;
        code = code << 6 | (byte(i) & 0x3fu);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

}  // namespace

std::optional<TextFault> find_text_fault(std::string_view text) {
    int line = 1;
    std::size_t line_start = 0;
    for (std::size_t i = 0; i < text.size();) {
        const auto c = static_cast<unsigned char>(text[i]);
        const std::size_t length = character_length(text.substr(i));
        if (length == 0 || is_control(c)) {
            const std::string reason = length == 0 ? fmt::format("byte 0x{:02x} is not UTF-8", c)
                                                   : fmt::format("control character 0x{:02x} (a binary file?)", c);
            return TextFault{line, static_cast<int>(i - line_start) + 1, reason};
        }
        i += length;
        if (c == '\n') {
            ++line;
            line_start = i;
        }
    }
    return std::nullopt;
}

}  // namespace lockstep::config
