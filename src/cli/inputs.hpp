// What commands read before they do anything: the experiment and the data folders.
#pragma once

#include <string>

#include "cli/options.hpp"
#include "config/data_path.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::cli {

struct LoadedInput {
    config::DataPath data;
    experiment::LoadedExperiments experiments;
};

/// Reads the experiment at `path` with the overrides of the command line. Throws InputError.
LoadedInput load_input(const std::string& path, const Globals& globals);

/// --print-config: prints the merged experiment and its origins.
void print_config(const LoadedInput& input);

/// An environment variable of lockstep's, or "".
std::string environment(const char* name);

}  // namespace lockstep::cli
