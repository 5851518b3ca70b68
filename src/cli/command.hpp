// One command of the program: its syntax and what it does.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/options.hpp"

namespace lockstep::cli {

struct Command {
    std::string name;  ///< "run", "machine list"
    Syntax syntax;
    ExitCode (*run)(const Parsed& parsed);
};

/// Each is in a file of its name.
Command run_command();
Command simulate_command();
Command analyze_command();
Command plan_show_command();
Command plan_search_command();
Command check_command();
Command status_command();
Command repair_command();
Command machine_list_command();
Command machine_show_command();
Command machine_detect_command();
Command device_list_command();
Command device_show_command();
Command device_detect_command();
Command calibrate_command();
Command model_list_command();
Command model_show_command();

}  // namespace lockstep::cli
