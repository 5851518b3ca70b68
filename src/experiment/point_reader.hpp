// Reads one point of an experiment: a document whose lists are gone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/data_path.hpp"
#include "config/document.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::experiment {

/// Reads many points that name the same few models and frameworks: each is loaded once.
class PointReader {
public:
    explicit PointReader(const config::DataPath& data) : data_(data) {}

    /// All of an experiment but name, label and merged. Errors go to `diagnostics`; the result is then not to be used.
    Experiment read(const config::Node& document, config::Diagnostics& diagnostics);

private:
    /// What is trained and how: all keys that a collective doesn't have.
    void read_training(config::Object& object, Experiment& experiment);
    const std::optional<model::Model>& load_model(const config::Node& node, config::Diagnostics& diagnostics);
    const std::optional<plan::Framework>& load_framework(const config::Node& node, config::Diagnostics& diagnostics);

    const config::DataPath& data_;
    std::map<std::string, std::optional<model::Model>> models_;  ///< by canonical text; none: its errors are reported
    std::map<std::string, std::optional<plan::Framework>> frameworks_;
};

}  // namespace lockstep::experiment
