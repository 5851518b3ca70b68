#include <fmt/format.h>

#include <algorithm>

#include "experiment/axes.hpp"
#include "experiment/experiment.hpp"
#include "experiment/merged.hpp"

namespace lockstep::experiment {

std::string format_config(const LoadedExperiments& loaded) {
    constexpr std::size_t widest = 48;  // a longer value doesn't push all origins to the right
    std::vector<std::pair<std::string, std::string>> lines;
    std::size_t width = 0;
    for (const auto& [path, value] : leaves(loaded.merged)) {
        lines.emplace_back(fmt::format("{} = {}", path, inline_text(value)), loaded.origins.at(path));
        if (lines.back().first.size() <= widest) width = std::max(width, lines.back().first.size());
    }
    std::string text;
    for (const auto& [setting, origin] : lines) text += fmt::format("{:<{}}   # {}\n", setting, width, origin);
    return text;
}

}  // namespace lockstep::experiment
