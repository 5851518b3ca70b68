// What the names of published measurements are called here (experiments/published/names.yaml).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/data_path.hpp"
#include "config/document.hpp"

namespace lockstep::experiment {

/// The framework of a row: a profile, and what its name says of the plan.
struct PublishedFramework {
    std::string profile;
    config::Node plan;  ///< a mapping of plan keys; null: it says nothing
};

/// The system of a measured collective: a machine as an experiment names it, or why there is none.
struct PublishedSystem {
    config::Node machine;
    std::string why_skipped;  ///< empty: there is a machine
};

/// Names that the table doesn't list are kept: they are those of the catalogue.
class PublishedNames {
public:
    /// Throws InputError with all errors of the table.
    explicit PublishedNames(const config::DataPath& data);

    /// As an experiment's `machine`: the name, or {node: NAME, count: `nodes`, network: ...} where the table knows a
    /// network for it and there are several nodes.
    config::Node machine(const std::string& name, int nodes) const;
    /// As an experiment's `model`.
    config::Node model(const std::string& name) const;
    /// By framework and model; spaces around the name don't count.
    PublishedFramework framework(std::string_view name, std::string_view model) const;
    /// By how the name begins; none when no entry fits.
    std::optional<PublishedSystem> system(std::string_view name) const;

private:
    config::Node table_;
};

}  // namespace lockstep::experiment
