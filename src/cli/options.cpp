#include "cli/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cstdlib>

#include "base/error.hpp"
#include "config/document.hpp"
#include "config/quantity.hpp"

namespace lockstep::cli {

namespace po = boost::program_options;

namespace {

const std::vector<OptionSpec> global_options = {
    {"set", "PATH=VALUE", "replace a value of the experiment (repeatable)"},
    {"json", "", "print the result as JSON"},
    {"quiet", "", "no progress on stderr"},
    {"color", "WHEN", "auto, always or never"},
    {"print-config", "", "print the merged experiment with the origin of each value, and stop"},
};

po::options_description describe(const Syntax& syntax) {
    po::options_description description;
    const auto add = [&](const OptionSpec& option) {
        if (option.value.empty())
            description.add_options()(option.name.c_str(), option.help.c_str());
        else
            description.add_options()(option.name.c_str(), po::value<std::vector<std::string>>()->composing(),
                                      option.help.c_str());
    };
    for (const auto& option : syntax.options) add(option);
    for (const auto& option : global_options) add(option);
    description.add_options()("words", po::value<std::vector<std::string>>()->composing());
    return description;
}

std::vector<std::string> known_options(const Syntax& syntax) {
    std::vector<std::string> names;
    for (const auto& option : syntax.options) names.push_back("--" + option.name);
    for (const auto& option : global_options) names.push_back("--" + option.name);
    return names;
}

[[noreturn]] void refuse(const Syntax& syntax, const std::string& message) {
    throw UsageError(fmt::format("{}; usage: lockstep {}", message, syntax.usage));
}

po::variables_map run_parser(const Syntax& syntax, const std::vector<std::string>& arguments) {
    const po::options_description description = describe(syntax);
    po::positional_options_description words;
    words.add("words", -1);
    po::variables_map map;
    try {
        // The default style guesses abbreviations, which breaks a script the day a new option is added.
        const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing &
                          ~po::command_line_style::allow_sticky & ~po::command_line_style::short_allow_adjacent;
        po::store(po::command_line_parser(arguments).options(description).positional(words).style(style).run(), map);
    } catch (const po::unknown_option& error) {
        const std::string name = error.get_option_name();
        refuse(syntax, fmt::format("unknown option {}{}", name, config::did_you_mean(name, known_options(syntax))));
    } catch (const po::error& error) { refuse(syntax, error.what()); }
    return map;
}

ColorChoice parse_color(const Syntax& syntax, const std::string& text) {
    if (text == "auto") return ColorChoice::automatic;
    if (text == "always") return ColorChoice::always;
    if (text == "never") return ColorChoice::never;
    refuse(syntax, fmt::format("--color wants auto, always or never, got '{}'", text));
}

void take_globals(const Syntax& syntax, Parsed& parsed) {
    Globals& globals = parsed.globals;
    if (parsed.has("set"))
        for (const auto& text : parsed.values["set"])
            globals.overrides.push_back(experiment::parse_override(text, "--set"));
    globals.json = parsed.has("json");
    globals.quiet = parsed.has("quiet");
    globals.print_config = parsed.has("print-config");
    if (const auto color = parsed.value("color")) globals.color = parse_color(syntax, *color);
}

}  // namespace

Parsed parse(const Syntax& syntax, const std::vector<std::string>& arguments) {
    const po::variables_map map = run_parser(syntax, arguments);
    Parsed parsed;
    for (const auto& [name, value] : map) {
        if (name == "words")
            parsed.words = value.as<std::vector<std::string>>();
        else if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value.value()))
            parsed.values[name] = *texts;
        else
            parsed.values[name] = {};
    }
    for (const auto& [name, values] : parsed.values)
        if (values.size() > 1 && name != "set")
            refuse(syntax, fmt::format("--{} is given {} times", name, values.size()));
    if (parsed.words.size() < syntax.least_words) refuse(syntax, "something is missing");
    if (parsed.words.size() > syntax.most_words)
        refuse(syntax, fmt::format("unexpected '{}'", parsed.words[syntax.most_words]));
    take_globals(syntax, parsed);
    return parsed;
}

std::optional<std::string> Parsed::value(const std::string& name) const {
    const auto found = values.find(name);
    if (found == values.end() || found->second.empty()) return std::nullopt;
    return found->second.back();
}

std::optional<long> Parsed::integer(const std::string& name, long least) const {
    const auto text = value(name);
    if (!text) return std::nullopt;
    long number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc() || end != text->data() + text->size() || number < least)
        throw UsageError(fmt::format("--{} wants a whole number of at least {}, got '{}'", name, least, *text));
    return number;
}

std::optional<std::vector<std::string>> Parsed::list(const std::string& name) const {
    const auto text = value(name);
    if (!text) return std::nullopt;
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text->size();) {
        const std::size_t comma = std::min(text->find(',', begin), text->size());
        if (comma == begin) throw UsageError(fmt::format("--{} has an empty entry in '{}'", name, *text));
        parts.push_back(text->substr(begin, comma - begin));
        begin = comma + 1;
    }
    return parts;
}

std::optional<std::vector<int>> Parsed::integers(const std::string& name) const {
    const auto parts = list(name);
    if (!parts) return std::nullopt;
    std::vector<int> numbers;
    for (const auto& part : *parts) {
        int number = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        if (error != std::errc() || end != part.data() + part.size() || number < 1)
            throw UsageError(
                fmt::format("--{} wants whole numbers from 1 on, separated by commas, got '{}'", name, part));
        numbers.push_back(number);
    }
    return numbers;
}

std::optional<Seconds> Parsed::seconds(const std::string& name) const {
    const auto text = value(name);
    if (!text) return std::nullopt;
    const bool is_bare = text->find_first_not_of("0123456789.") == std::string::npos;
    try {
        const Seconds parsed = config::parse_seconds(is_bare ? *text + " s" : *text);
        if (parsed > Seconds{0}) return parsed;
    } catch (const InputError&) {
        // Reported below with the option's name.
    }
    throw UsageError(fmt::format("--{} wants a time above 0 such as 300 or '5 min', got '{}'", name, *text));
}

std::string format_help(const Syntax& syntax) {
    std::string text = fmt::format("lockstep {}\n\n{}\n", syntax.usage, syntax.about);
    const auto add = [&](const OptionSpec& option) {
        const std::string left =
            option.value.empty() ? "--" + option.name : fmt::format("--{} {}", option.name, option.value);
        text += fmt::format("  {:<24}{}\n", left, option.help);
    };
    if (!syntax.options.empty()) text += "\nOptions\n";
    for (const auto& option : syntax.options) add(option);
    text += "\nOptions of every command\n";
    for (const auto& option : global_options) add(option);
    return text;
}

bool use_color(ColorChoice choice) {
    if (choice == ColorChoice::automatic) {
        const char* own = std::getenv("LOCKSTEP_COLOR");
        const std::string text = own == nullptr ? "auto" : own;
        if (text == "always") choice = ColorChoice::always;
        if (text == "never") choice = ColorChoice::never;
    }
    if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
    // mpirun gives its ranks a terminal even when its own output is a file.
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr) return false;
    const char* no_color = std::getenv("NO_COLOR");
    return (no_color == nullptr || *no_color == '\0') && isatty(STDOUT_FILENO) != 0;
}

}  // namespace lockstep::cli
