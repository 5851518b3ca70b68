// Puts --set values into a document, so that their errors are located as "--set ranks=0".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::experiment {

/// A document with overrides in it, and the origin behind the location of each: "--set ranks=0" -> "--set".
struct Overridden {
    config::Node document;
    std::map<std::string, std::string> origin_of_label;
};

/// Values that can't be parsed or placed go to `diagnostics`.
Overridden apply_overrides(const config::Node& document, const std::vector<Override>& overrides,
                           config::Diagnostics& diagnostics);

}  // namespace lockstep::experiment
