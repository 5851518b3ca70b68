// Makes one compressed file of a run's rank files, and repairs what a kill left behind, by copying.
#pragma once

#include <filesystem>

#include "record/run_description.hpp"

namespace lockstep::record {

/// Merges the rank files of a folder into run.h5 (compressed, sorted by (step, rank), with an offset table), written
/// beside and renamed, and removes the rank files when that succeeded. Throws RuntimeError and leaves the rank files as
/// they are otherwise. A merge that is killed leaves run.h5 whole or the rank files whole, or both (run.h5 counts, and
/// merging again removes the rank files).
/// Steps that only some of the ranks finished are not in it.
void merge_run(const std::filesystem::path& folder);

struct RepairReport {
    std::filesystem::path output;
    int ranks = 0;
    std::int64_t steps = 0;            ///< kept on all ranks
    std::int64_t discarded_steps = 0;  ///< finished by some ranks only, the most of any rank
    int leftover_files = 0;            ///< RunReader::leftover_files; not copied, not removed
};
/// Copies every finished step of a run that has ended into `output`, a new folder with a merged run.h5, on any file
/// system. Never edits in place. Throws InputError while the run lives.
RepairReport repair_run(const std::filesystem::path& folder, const std::filesystem::path& output);

/// What `lockstep status` prints, without reading graph or events.
struct RunState {
    Status status = Status::running;
    bool is_alive = false;  ///< the process that writes it exists
    std::int64_t steps = 0, planned_steps = 0;
    int ranks_present = 0, ranks = 0;
    bool is_merged = false;
    int leftover_files = 0;  ///< see RunReader
};
RunState read_state(const std::filesystem::path& folder_or_file);

}  // namespace lockstep::record
