// Command lines: what a command accepts, and what a user gave it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::cli {

struct OptionSpec {
    std::string name;   ///< without dashes
    std::string value;  ///< name of its value in help; "" for a switch
    std::string help;
};

/// What a command accepts.
struct Syntax {
    std::string usage;  ///< "run EXPERIMENT [options]"
    std::string about;  ///< one sentence
    std::vector<OptionSpec> options;
    std::size_t least_words = 0;
    std::size_t most_words = 0;
};

enum class ColorChoice { automatic, always, never };

/// Options every command takes.
struct Globals {
    std::vector<experiment::Override> overrides;
    bool json = false;
    bool quiet = false;
    bool print_config = false;
    ColorChoice color = ColorChoice::automatic;
};

struct Parsed {
    std::vector<std::string> words;
    std::map<std::string, std::vector<std::string>> values;
    Globals globals;

    bool has(const std::string& name) const { return values.count(name) > 0; }
    std::optional<std::string> value(const std::string& name) const;
    /// "1,2,4" as positive integers. Throws UsageError.
    std::optional<std::vector<int>> integers(const std::string& name) const;
    std::optional<long> integer(const std::string& name, long least) const;
    std::optional<Seconds> seconds(const std::string& name) const;  ///< "300" or "5 min"
    /// "a,b" at commas; empty parts are refused.
    std::optional<std::vector<std::string>> list(const std::string& name) const;
};

/// Parses what stands after the command's name. No abbreviations. Throws UsageError.
Parsed parse(const Syntax& syntax, const std::vector<std::string>& arguments);

/// Help text, at most 80 columns.
std::string format_help(const Syntax& syntax);

/// Is colour to be used on stdout? --color, then LOCKSTEP_COLOR, NO_COLOR, and whether it is a terminal.
bool use_color(ColorChoice choice);

}  // namespace lockstep::cli
