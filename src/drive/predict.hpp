// Collects what an executor says of a number of steps, and writes a prediction as a run.
#pragma once

#include <filesystem>
#include <vector>

#include "record/run_description.hpp"
#include "step/executor.hpp"

namespace lockstep::drive {

/// Records of `steps` steps, in order.
std::vector<step::StepRecord> collect_steps(step::Executor& executor, std::int64_t steps);

/// Writes the records of a prediction to `folder` in the schema of measured runs, merged. Throws as record does.
void write_prediction(const std::filesystem::path& folder, const record::RunDescription& run,
                      const step::StepGraph& graph, const std::vector<step::StepRecord>& records);

}  // namespace lockstep::drive
