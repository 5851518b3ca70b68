#include "experiment/experiment.hpp"

namespace lockstep::experiment {

plan::Plan Experiment::plan_for(const machine::Placement& placement) const {
    plan::Plan made = plan::make_plan(plan, batch, optimizer, placement);
    plan::check_plan(made, model);
    return made;
}

std::string Experiment::series_text() const {
    std::vector<config::Node::Entry> kept;
    for (const auto& entry : merged.entries())
        if (entry.key != "ranks" && entry.key != "steps" && entry.key != "warmup") kept.push_back(entry);
    return config::Node::make_mapping(std::move(kept), merged.where()).canonical();
}

}  // namespace lockstep::experiment
