// Models for plans: of this source tree, and written in a test.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "model/model.hpp"
#include "plan/plan.hpp"

namespace lockstep::plan {

/// As an experiment names it: "gpt-small", "{base: gpt-small, vocab: 50304}".
inline model::Model model_named(std::string_view text) {
    const config::DataPath data(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR});
    config::Diagnostics diagnostics;
    model::Model model = model::load_model(data, config::parse_text(text, "test.yaml"), diagnostics);
    diagnostics.throw_if_any();
    return model;
}

/// A model file's text.
inline model::Model model_of(std::string_view text) {
    config::Diagnostics diagnostics;
    model::Model model = model::read_model(config::parse_text(text, "test.yaml"), diagnostics);
    diagnostics.throw_if_any();
    return model;
}

}  // namespace lockstep::plan
