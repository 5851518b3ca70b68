// Reads a run, finished or not, one step at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "record/run_description.hpp"
#include "step/graph.hpp"
#include "step/span.hpp"

namespace lockstep::record {

/// Opens a run's folder (its merged run.h5, or its rank files up to the watermark that all of them reached) or a merged
/// file. Throws InputError when there is no run, the schema is newer than this version reads, or a file is broken
/// (never advises h5clear).
class RunReader {
public:
    explicit RunReader(const std::filesystem::path& folder_or_file);
    ~RunReader();
    RunReader(RunReader&&) noexcept;
    RunReader& operator=(RunReader&&) noexcept;

    const RunDescription& run() const;
    const std::vector<RankDescription>& ranks() const;  ///< those whose data are here
    Status status() const;
    std::int64_t steps() const;       ///< finished on every rank that is here
    std::int64_t most_steps() const;  ///< finished on any rank that is here
    bool is_alive() const;            ///< a writer still holds one of the files
    bool is_merged() const;
    /// Rank files of this run beside its run.h5, which a merge that was killed had not removed yet: run.h5 holds all
    /// that they hold.
    const std::vector<std::filesystem::path>& leftover_files() const;
    const step::StepGraph& graph() const;  ///< read when first asked for; throws InputError when it makes no sense
    const std::filesystem::path& path() const;
    /// What a careful reader should know: "interrupted at step 37 of 60", "rank 3's file is missing".
    const std::vector<std::string>& remarks() const;

    /// Calls f for each record with first <= step < last, ordered by (step, rank). Holds one step of one rank in memory
    /// at a time.
    void for_each(std::int64_t first, std::int64_t last, const std::function<void(const step::StepRecord&)>& f) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace lockstep::record
