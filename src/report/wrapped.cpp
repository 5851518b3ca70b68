#include "report/wrapped.hpp"

#include <fmt/format.h>

namespace lockstep::report {

std::string wrapped(std::string_view text, std::string_view first, std::size_t width) {
    const std::string indent(first.size(), ' ');
    std::string result, line(first);
    bool is_line_empty = true;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        if (!is_line_empty && line.size() + 1 + word.size() > width) {
            result += line + "\n";
            line = indent;
            is_line_empty = true;
        }
        if (!is_line_empty) line += ' ';
        line += word;
        is_line_empty = false;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return result + line + "\n";
}

std::string wrapped_list(std::string_view heading, const std::vector<std::string>& items) {
    if (items.empty()) return "";
    std::string result = fmt::format("\n{}\n", heading);
    for (const std::string& item : items) result += wrapped(item, "  - ");
    return result;
}

}  // namespace lockstep::report
