#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "config/document.hpp"

namespace lockstep::config {

namespace {

constexpr std::size_t longest_word = 64;  // longer texts are no misspelt names

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

/// Insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::array<std::vector<std::size_t>, 3> rows;  // of a: two back, one back, this
    for (auto& row : rows) row.resize(b.size() + 1);
    std::iota(rows[2].begin(), rows[2].end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::ranges::rotate(rows, rows.begin() + 1);
        auto& [before, above, row] = rows;
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return rows[2][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
    if (word.empty() || word.size() > longest_word) return std::nullopt;
    const std::string wanted = lower_case(word);
    const std::string* best = nullptr;
    const std::string* containing = nullptr;
    std::size_t best_distance = 0;
    for (const std::string& candidate : candidates) {
        if (candidate.size() > longest_word) continue;
        const std::string lower = lower_case(candidate);
        const std::size_t distance = edit_distance(wanted, lower);
        const std::size_t limit = std::max<std::size_t>(1, std::max(wanted.size(), lower.size()) / 3);
        if (distance <= limit && distance < wanted.size() && (best == nullptr || distance < best_distance)) {
            best = &candidate;
            best_distance = distance;
        }
        if (containing == nullptr && wanted.size() >= 3 && lower.find(wanted) != std::string::npos)
            containing = &candidate;
    }
    if (best == nullptr) best = containing;
    return best == nullptr ? std::nullopt : std::optional(*best);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    const auto found = nearest(word, candidates);
    return found ? " (did you mean '" + *found + "'?)" : "";
}

}  // namespace lockstep::config
