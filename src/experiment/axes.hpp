// The lists of an experiment and the points they make.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/document.hpp"

namespace lockstep::experiment {

/// One key with a list: "model", "plan.bucket".
struct ListAxis {
    std::string path;
    std::vector<config::Node> values;
};

/// The lists of the keys that may have them (plan.stage_blocks is one value, a list), in the order in which points are
/// numbered (the last varies fastest). Empty lists, lists in lists and values given twice go to `diagnostics`.
std::vector<ListAxis> find_axes(const config::Node& document, config::Diagnostics& diagnostics);

/// Product of the lengths, at most SIZE_MAX.
std::size_t point_count(const std::vector<ListAxis>& axes);

/// One combination: the document with a scalar in place of each list, and "key=value ..." for lists longer than one.
struct PointDocument {
    config::Node document;
    std::string label;
};
PointDocument point_document(const config::Node& document, const std::vector<ListAxis>& axes, std::size_t number);

/// A value on one line, as YAML writes it: "resnet50", "[1, 2]", "{base: gpt-small, layers: 24}".
std::string inline_text(const config::Node& node);

}  // namespace lockstep::experiment
