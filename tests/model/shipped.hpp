// The models of this source tree, and models written in a test.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "model/model.hpp"

namespace lockstep::model {

inline config::DataPath shipped_models() {
    return config::DataPath(std::vector<std::filesystem::path>{std::filesystem::path(LOCKSTEP_SOURCE_DIR)});
}
inline Model load_shipped(std::string_view name) { return load_model(shipped_models(), name); }

/// The model of a YAML text; throws InputError with all errors.
inline Model model_of(std::string_view text) {
    config::Diagnostics diagnostics;
    Model model = read_model(config::parse_text(text, "test.yaml"), diagnostics);
    diagnostics.throw_if_any();
    return model;
}

/// The errors of a YAML text, one each.
inline std::vector<std::string> errors_of(std::string_view text) {
    config::Diagnostics diagnostics;
    read_model(config::parse_text(text, "test.yaml"), diagnostics);
    return diagnostics.errors();
}

}  // namespace lockstep::model
