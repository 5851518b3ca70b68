// Writes one rank's steps as they come to an HDF5 file that can be read while it grows and survives a kill.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "record/run_description.hpp"
#include "step/graph.hpp"
#include "step/span.hpp"

namespace lockstep::record {

/// One serial HDF5 file, SWMR, compound tables /events and /steps, uncompressed; after each step the data
/// are flushed, then the watermark /steps_complete. The file gets its name when it can be read. Not thread safe.
/// Methods throw RuntimeError (disk full, folder gone, locking refused) naming file and remedy.
class LiveWriter {
public:
    LiveWriter(const std::filesystem::path& file, const RunDescription& run, const RankDescription& rank,
               const step::StepGraph& graph);
    ~LiveWriter();  ///< leaves the status as it is
    LiveWriter(LiveWriter&&) noexcept;
    LiveWriter& operator=(LiveWriter&&) noexcept;

    /// Appends a step, durable against the death of the process when it returns. Steps of this rank come in order from
    /// 0 (LogicError otherwise). Spans are left out for steps that `record_every` skips.
    void append(const step::StepRecord& step);
    /// Marks why the run ended (or that it goes on), at once.
    void set_status(Status status);
    std::int64_t steps_written() const;
    /// Closes the file; no call may follow.
    void close();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The file of a rank in a run's folder: "rank-00000.h5".
std::filesystem::path rank_file(const std::filesystem::path& run_folder, int rank);

/// Makes the folder of a new run; throws InputError when it exists and is not empty, or can't be made or written.
/// Network file systems on which SWMR does not work (NFS, SMB) are refused with a hint.
void make_run_folder(const std::filesystem::path& folder);
/// The same without the question which file system it is, for files that nobody reads while they grow.
void make_empty_folder(const std::filesystem::path& folder);
/// "runs/<experiment>-<N>r-<UTC>[-<job id>]"
std::filesystem::path default_run_folder(const std::string& experiment, int ranks);

}  // namespace lockstep::record
