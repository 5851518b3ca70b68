// Where models/, topology/ and experiments/ are found.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::config {

/// Folders that may hold models/ and topology/, in order of preference: beside the experiment, LOCKSTEP_DATA_PATH
/// (colon separated), $XDG_CONFIG_HOME/lockstep (or ~/.config/lockstep), the install share beside the executable, the
/// source tree.
class DataPath {
public:
    /// `beside` may be empty; its parent folders up to one that holds models/ or topology/ count too.
    explicit DataPath(const std::filesystem::path& beside = {});
    explicit DataPath(std::vector<std::filesystem::path> folders);

    const std::vector<std::filesystem::path>& folders() const { return folders_; }
    /// The file for a name or a path. A name with '/' or ending in ".yaml"/".yml"/".json" is a path as it is (relative
    /// to the working folder, then to the folders); else `subfolder/NAME.yaml` in the first folder that has it. Throws
    /// InputError that lists the known names, the nearest one and the folders searched. `what` is "model", "machine"
    /// ...
    std::filesystem::path find(std::string_view what, std::string_view subfolder, std::string_view name) const;
    /// Names (without .yaml) of all files in `subfolder`, sorted, each once.
    std::vector<std::string> names(std::string_view subfolder) const;

private:
    std::vector<std::filesystem::path> folders_;
};

}  // namespace lockstep::config
