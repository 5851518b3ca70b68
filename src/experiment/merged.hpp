// The merged document of a point and of a file: everything an experiment was, in one spelling.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::experiment {

/// The point's values, keys in a fixed order, numbers and sizes in one spelling ("25 MiB", however it was written);
/// `machine`, `model` and `framework` as in `document`. Defaults that follow from framework or model are in it.
config::Node merged_point(const Experiment& point, const config::Node& document);

/// The file's document (lists and all) with the values that follow from framework or model where all points agree.
config::Node merged_file(const config::Node& document, const std::vector<Experiment>& points);

/// Key path of each leaf -> where its value came from.
std::map<std::string, std::string> origins_of(const config::Node& merged,
                                              const std::map<std::string, std::string>& origin_of_label);

/// The paths and values of all leaves in document order. A sequence is one leaf.
std::vector<std::pair<std::string, config::Node>> leaves(const config::Node& document);

}  // namespace lockstep::experiment
