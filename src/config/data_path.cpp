#include "config/data_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/error.hpp"
#include "config/document.hpp"

namespace lockstep::config {

namespace fs = std::filesystem;

namespace {

bool is_folder(const fs::path& path) {
    std::error_code failure;
    return fs::is_directory(path, failure);
}

bool is_file(const fs::path& path) {
    std::error_code failure;
    return fs::is_regular_file(path, failure);
}

bool holds_data(const fs::path& folder) { return is_folder(folder / "models") || is_folder(folder / "topology"); }

/// The folder itself and the nearest of its parents that holds data.
std::vector<fs::path> beside_folders(const fs::path& beside) {
    std::vector<fs::path> folders;
    if (beside.empty()) return folders;
    fs::path folder = fs::absolute(beside).lexically_normal();
    if (is_file(folder)) folder = folder.parent_path();
    folders.push_back(folder);
    while (!holds_data(folder) && folder.has_relative_path()) folder = folder.parent_path();
    if (holds_data(folder)) folders.push_back(folder);
    return folders;
}

std::vector<fs::path> environment_folders() {
    std::vector<fs::path> folders;
    const char* const value = std::getenv("LOCKSTEP_DATA_PATH");
    std::string_view rest = value == nullptr ? "" : value;
    while (!rest.empty()) {
        const auto colon = rest.find(':');
        if (colon != 0) folders.emplace_back(rest.substr(0, colon));
        rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
    }
    return folders;
}

/// Folders that are used when they exist: the user's, the install share beside the executable, the source tree.
std::vector<fs::path> standing_folders() {
    std::vector<fs::path> folders;
    const char* const config_home = std::getenv("XDG_CONFIG_HOME");
    const char* const home = std::getenv("HOME");
    if (config_home != nullptr && *config_home != '\0')
        folders.push_back(fs::path(config_home) / "lockstep");
    else if (home != nullptr && *home != '\0')
        folders.push_back(fs::path(home) / ".config" / "lockstep");
    std::error_code failure;
    const fs::path executable = fs::read_symlink("/proc/self/exe", failure);
    if (!failure) folders.push_back(executable.parent_path().parent_path() / "share" / "lockstep");
    folders.emplace_back(LOCKSTEP_SOURCE_DIR);
    std::erase_if(folders, [](const fs::path& folder) { return !is_folder(folder); });
    return folders;
}

std::string joined(const std::vector<fs::path>& paths) {
    std::vector<std::string> texts;
    for (const auto& path : paths) texts.push_back(path.string());
    return fmt::format("{}", fmt::join(texts, ", "));
}

bool is_path(std::string_view name) {
    return name.find('/') != std::string_view::npos || name.ends_with(".yaml") || name.ends_with(".yml") ||
           name.ends_with(".json");
}

}  // namespace

DataPath::DataPath(const fs::path& beside) {
    for (const auto& group : {beside_folders(beside), environment_folders(), standing_folders()})
        for (const auto& folder : group)
            if (std::ranges::find(folders_, folder) == folders_.end()) folders_.push_back(folder);
}

DataPath::DataPath(std::vector<fs::path> folders) : folders_(std::move(folders)) {}

fs::path DataPath::find(std::string_view what, std::string_view subfolder, std::string_view name) const {
    if (name.empty())
        throw InputError(
            fmt::format("a {} has an empty name; name one of: {}", what, fmt::join(names(subfolder), ", ")));
    if (is_path(name)) {
        if (is_file(name)) return fs::path(name);
        for (const auto& folder : folders_)
            if (is_file(folder / name)) return folder / name;
        throw InputError(fmt::format("{} file '{}' does not exist (looked in the working folder, {})", what, name,
                                     joined(folders_)));
    }
    std::vector<fs::path> searched;
    for (const auto& folder : folders_) {
        searched.push_back(folder / subfolder);
        const fs::path file = searched.back() / (std::string(name) + ".yaml");
        if (is_file(file)) return file;
    }
    const auto known = names(subfolder);
    throw InputError(fmt::format("unknown {} '{}'{}; known: {}; searched: {}", what, name, did_you_mean(name, known),
                                 known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), joined(searched)));
}

std::vector<std::string> DataPath::names(std::string_view subfolder) const {
    std::set<std::string> names;
    for (const auto& folder : folders_) {
        std::error_code failure;
        for (const auto& entry : fs::directory_iterator(folder / subfolder, failure))
            if (entry.path().extension() == ".yaml" && is_file(entry.path()))
                names.insert(entry.path().stem().string());
    }
    return {names.begin(), names.end()};
}

}  // namespace lockstep::config
