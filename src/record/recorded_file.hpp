// One HDF5 file of a run, opened for reading: a rank's, live or finished, or a merged one.
#pragma once

#include <filesystem>
#include <vector>

#include "record/hdf5_handle.hpp"
#include "record/run_description.hpp"
#include "record/schema.hpp"
#include "step/span.hpp"

namespace lockstep::record {

class RecordedFile {
public:
    /// Opens normally, else as a reader of a file that is (or was, when its writer was killed) being written. Reads
    /// description and the rows of /steps up to the watermark. Throws InputError for what is not a run, is damaged, or
    /// has a newer schema.
    explicit RecordedFile(const std::filesystem::path& path);

    const RunDescription& run() const { return run_; }
    const std::vector<RankDescription>& ranks() const { return ranks_; }
    const std::vector<StepRow>& steps() const { return steps_; }
    Status status() const { return status_; }
    bool was_closed() const { return was_closed_; }  ///< opened normally: its writer ended in order
    bool has_living_writer()
        const;  ///< on this host: the process exists; elsewhere: the file changed within two minutes
    step::StepGraph read_graph() const;
    /// The events of one row of steps(), with `offset` added to all times. `op_count` bounds what they may name.
    step::StepRecord read_step(const StepRow& row, Nanoseconds offset, std::int64_t multiplicity,
                               std::int32_t op_count);
    /// Events are read with this graph's kinds; call once before read_step.
    void prepare_events(const step::StepGraph& graph);

private:
    [[noreturn]] void refuse(const std::string& what) const;
    void open();
    void read_description();
    void read_steps();
    std::int64_t read_cell(const char* name) const;

    std::filesystem::path path_;
    std::string name_;
    bool was_closed_ = false;
    Handle file_, events_, event_row_;
    hsize_t event_rows_ = 0;
    RunDescription run_;
    std::vector<RankDescription> ranks_;
    std::vector<StepRow> steps_;
    Status status_ = Status::running;
    std::vector<EventRow> buffer_;
};

}  // namespace lockstep::record
