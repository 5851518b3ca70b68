// The parameters of a block in a model file: their values for one use, put where "$name" is written.
#pragma once

#include <map>
#include <string>

#include "config/document.hpp"

namespace lockstep::model {

using BlockValues = std::map<std::string, config::Node>;

/// Values for one use: defaults of `parameters` (nothing: required) overridden by `with`. Reports, at the use, values
/// that are missing or that the block doesn't have.
BlockValues bind_parameters(const std::string& block, const config::Node& parameters, const config::Node& with,
                            const config::Location& use, config::Diagnostics& diagnostics);

/// The same document with each unquoted scalar "$name" replaced by its value; places stay. Reports unknown names.
config::Node fill_parameters(const config::Node& node, const BlockValues& values, config::Diagnostics& diagnostics);

}  // namespace lockstep::model
