#include "report/table.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace lockstep::report {

namespace {

std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t width, Align align) {
    const std::string spaces(width - width_of(text), ' ');
    return align == Align::left ? text + spaces : spaces + text;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    if (cells.size() != columns_.size()) throw LogicError("a table row of another width than its header");
    rows_.push_back(std::move(cells));
}

std::string Table::text(const std::string& indent) const {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t width = width_of(columns_[c].title);
        for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
        widths.push_back(width);
    }
    std::string result;
    const auto add_line = [&](const auto& cell_at) {
        std::string line = indent;
        for (std::size_t c = 0; c < columns_.size(); ++c)
            line += (c == 0 ? "" : "  ") + padded(cell_at(c), widths[c], columns_[c].align);
        line.erase(line.find_last_not_of(' ') + 1);
        result += line + "\n";
    };
    add_line([&](std::size_t c) { return columns_[c].title; });
    add_line([&](std::size_t c) { return std::string(widths[c], '-'); });
    for (const auto& row : rows_) add_line([&](std::size_t c) { return row[c]; });
    return result;
}

}  // namespace lockstep::report
