// Writes one rank's steps as they come to an HDF5 file that can be read while it grows and survives a kill.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "record/run_description.hpp"
#include "step/graph.hpp"
#include "step/span.hpp"

namespace lockstep::record {

/// One serial HDF5 file, SWMR, compound tables /events and /steps (and /device_samples, where the rank's device is
/// sampled), uncompressed. The tables grow by whole chunks, whose
/// rows have step -1 until they are written; closing cuts those off. A step is three writes past HDF5's caches: its
/// events, its row of /steps, then the watermark /steps_complete, the number of steps that are whole; HDF5's own
/// metadata are flushed only when a table grows. The file gets its name when it can be read. Not thread safe.
///
/// Measured for 300 events of 64 bytes a step on ext4, two busy cores, medians of 3 interleaved runs. Flushing whole
/// chunks (1024 rows) at each step: 31 us, mean of all but the slowest hundredth 57 us. As it is, by rows of a chunk:
/// 512 55/47, 1024 13/32, 2048 13/27, 4096 13/24, 16384 13/20, 65536 17/18 us. A chunk of 4096 is 256 KiB, the least
/// size of a file.
///
/// Methods throw RuntimeError (disk full, folder gone, locking refused) naming file and remedy.
class LiveWriter {
public:
    LiveWriter(const std::filesystem::path& file, const RunDescription& run, const RankDescription& rank,
               const step::StepGraph& graph);
    ~LiveWriter();  ///< leaves the status as it is
    LiveWriter(LiveWriter&&) noexcept;
    LiveWriter& operator=(LiveWriter&&) noexcept;

    /// Appends a step, durable against the death of the process when it returns. Steps of this rank come in order from
    /// 0, with a device's state only when its description says that it is sampled (LogicError otherwise). Spans are
    /// left out for steps that `record_every` skips.
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
