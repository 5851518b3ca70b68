// Finds the command, runs it, and turns whatever was thrown into a message and an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/version.hpp"
#include "config/document.hpp"
#include "world/world.hpp"

namespace lockstep::cli {

namespace {

std::vector<Command> all_commands() {
    return {run_command(),          simulate_command(),      analyze_command(),        plan_show_command(),
            plan_search_command(),  check_command(),         status_command(),         repair_command(),
            machine_list_command(), machine_show_command(),  machine_detect_command(), device_list_command(),
            device_show_command(),  device_detect_command(), calibrate_command(),      model_list_command(),
            model_show_command()};
}

std::string overview(const std::vector<Command>& commands) {
    std::string text = "lockstep executes, simulates and explains how training scales across GPUs.\n\n";
    for (const auto& command : commands)
        text += fmt::format("  lockstep {:<34}{}\n", command.syntax.usage.substr(0, 33), command.syntax.about);
    return text + "\n'lockstep help COMMAND' says more; 'lockstep --version' names the libraries in use.\n";
}

struct Match {
    const Command* command = nullptr;
    std::vector<std::string> rest;
};

/// The command whose words the arguments begin with.
Match find_command(const std::vector<Command>& commands, const std::vector<std::string>& arguments) {
    for (const std::size_t words : {std::size_t{2}, std::size_t{1}}) {
        if (arguments.size() < words) continue;
        const std::string name = words == 1 ? arguments[0] : arguments[0] + " " + arguments[1];
        for (const auto& command : commands)
            if (command.name == name)
                return {&command, {arguments.begin() + static_cast<long>(words), arguments.end()}};
    }
    std::vector<std::string> names;
    for (const auto& command : commands) names.push_back(command.name);
    const std::string given = arguments.size() > 1 ? arguments[0] + " " + arguments[1] : arguments[0];
    std::string hint = config::did_you_mean(given, names);
    if (hint.empty()) hint = config::did_you_mean(arguments[0], names);
    throw UsageError(fmt::format("there is no command '{}'{}; 'lockstep help' lists the commands", arguments[0], hint));
}

ExitCode dispatch(std::vector<std::string> arguments) {
    const std::vector<Command> commands = all_commands();
    const auto is_help = [](const std::string& word) { return word == "help" || word == "--help" || word == "-h"; };
    if (arguments.empty()) {
        fmt::print(stderr, "{}", overview(commands));
        return ExitCode::usage;
    }
    if (arguments[0] == "--version") {
        fmt::print("{}", version_text());
        return ExitCode::ok;
    }
    bool wants_help = false;
    for (const auto& word : arguments) wants_help = wants_help || word == "--help" || word == "-h";
    if (is_help(arguments[0]) || wants_help) {
        std::erase_if(arguments, is_help);
        if (arguments.empty())
            fmt::print("{}", overview(commands));
        else
            fmt::print("{}", format_help(find_command(commands, arguments).command->syntax));
        return ExitCode::ok;
    }
    const Match match = find_command(commands, arguments);
    return match.command->run(parse(match.command->syntax, match.rest));
}

/// The same bad argument is seen by every rank of a launch: rank 0 reports it, the others wait for that before their
/// exit makes the launcher kill the rest.
bool speaks_for_launch() {
    try {
        return world::detect_launcher().rank == 0;
    } catch (const UsageError&) { return true; }
}

int report(const std::string& message, ExitCode code) {
    const bool is_shared_mistake = code == ExitCode::usage || code == ExitCode::bad_input;
    if (is_shared_mistake && !speaks_for_launch())
        usleep(500'000);
    else
        fmt::print(stderr, "lockstep: {}\n", message);
    return static_cast<int>(code);
}

}  // namespace

}  // namespace lockstep::cli

int main(int argc, char** argv) {
    using namespace lockstep;
    try {
        const int code = static_cast<int>(cli::dispatch(std::vector<std::string>(argv + 1, argv + argc)));
        if (std::fflush(stdout) != 0)
            return cli::report("can't write the result to stdout (is the disk full?)", ExitCode::runtime_failure);
        return code;
    } catch (const Error& error) { return cli::report(error.what(), error.code()); } catch (const std::bad_alloc&) {
        return cli::report("out of memory; use a smaller batch or model", ExitCode::runtime_failure);
    } catch (const std::exception& error) {
        return cli::report(std::string("unexpected: ") + error.what(), ExitCode::runtime_failure);
    }
}
