#include "experiment/experiment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep::experiment {

namespace {

constexpr std::array<std::string_view, 4> not_of_series{"ranks", "steps", "warmup", "failures"};

}  // namespace

plan::Plan Experiment::plan_for(const machine::Placement& placement) const {
    if (collective) {
        plan::Plan all;
        all.mesh.dp = placement.ranks;
        return all;
    }
    plan::Plan made = plan::make_plan(plan, batch, optimizer, placement);
    plan::check_plan(made, model);
    return made;
}

std::string Experiment::series_text() const {
    std::vector<config::Node::Entry> kept;
    for (const auto& entry : merged.entries())
        if (std::ranges::find(not_of_series, entry.key) == not_of_series.end()) kept.push_back(entry);
    return config::Node::make_mapping(std::move(kept), merged.where()).canonical();
}

}  // namespace lockstep::experiment
