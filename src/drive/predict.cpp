#include "drive/predict.hpp"

#include <map>

#include "record/live_writer.hpp"
#include "record/run_file.hpp"

namespace lockstep::drive {

std::vector<step::StepRecord> collect_steps(step::Executor& executor, std::int64_t steps) {
    std::vector<step::StepRecord> all;
    executor.enqueue(0);
    for (std::int64_t done = 0; done < steps; ++done) {
        if (done + 1 < steps) executor.enqueue(done + 1);
        for (auto& record : executor.collect()) all.push_back(std::move(record));
    }
    return all;
}

void write_prediction(const std::filesystem::path& folder, const record::RunDescription& run,
                      const step::StepGraph& graph, const std::vector<step::StepRecord>& records) {
    record::make_run_folder(folder);
    std::map<int, record::LiveWriter> writers;
    for (const auto& step : records) {
        auto writer = writers.find(step.rank);
        if (writer == writers.end()) {
            record::RankDescription rank;
            rank.rank = step.rank;
            rank.device = run.machine + " (simulated)";
            rank.multiplicity = step.multiplicity;
            writer = writers.try_emplace(step.rank, record::rank_file(folder, step.rank), run, rank, graph).first;
        }
        writer->second.append(step);
    }
    for (auto& [rank, writer] : writers) {
        writer.set_status(record::Status::complete);
        writer.close();
    }
    record::merge_run(folder);
}

}  // namespace lockstep::drive
