// A plain text table: columns as wide as their content, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace lockstep::report {

enum class Align { left, right };

class Table {
public:
    struct Column {
        std::string title;
        Align align = Align::right;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    void add(std::vector<std::string> cells);
    /// Lines with two spaces between columns, no trailing spaces; a header and a rule. Widths count UTF-8 characters.
    std::string text(const std::string& indent = "") const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::report
