#include "sim/predict.hpp"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace lockstep::sim {

std::vector<step::StepRecord> predict(const step::StepGraph& graph, const step::Durations& durations, int steps,
                                      const SimOptions& options) {
    if (steps < 1) throw InputError(fmt::format("steps is {} (nothing would be predicted); use at least 1", steps));
    SimExecutor executor(durations, options);
    executor.prepare(graph);
    executor.enqueue(0);
    std::vector<step::StepRecord> records;
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) executor.enqueue(step + 1);
        auto of_step = executor.collect();
        records.insert(records.end(), std::make_move_iterator(of_step.begin()), std::make_move_iterator(of_step.end()));
    }
    return records;
}

}  // namespace lockstep::sim
