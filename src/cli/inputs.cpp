#include "cli/inputs.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace lockstep::cli {

LoadedInput load_input(const std::string& path, const Globals& globals) {
    config::DataPath own;
    const std::filesystem::path file = own.find("experiment", "experiments", path);
    config::DataPath data(file.parent_path());
    auto experiments = experiment::load_experiment(file, globals.overrides, data);
    return {std::move(data), std::move(experiments)};
}

void print_config(const LoadedInput& input) { fmt::print("{}", experiment::format_config(input.experiments)); }

std::string environment(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
}

}  // namespace lockstep::cli
