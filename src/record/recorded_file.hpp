// One HDF5 file of a run, opened for reading: a rank's, live or finished, or a merged one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "record/device_rows.hpp"
#include "record/hdf5_handle.hpp"
#include "record/run_description.hpp"
#include "record/schema.hpp"
#include "record/seal.hpp"
#include "step/span.hpp"

namespace lockstep::record {

class RecordedFile {
public:
    /// Opens normally, else as a reader of a file that is (or was, when its writer was killed) being written. Reads
    /// description and the rows of /steps up to the watermark. Throws InputError for what is not a run, is damaged, or
    /// has a newer schema.
    explicit RecordedFile(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return path_; }
    const RunDescription& run() const { return run_; }
    const std::vector<RankDescription>& ranks() const { return ranks_; }
    /// In order of (step, rank); in a rank's file the n-th is step n of that rank.
    const std::vector<StepRow>& steps() const { return steps_; }
    /// Number of steps from 0 on.
    std::int64_t step_count() const { return steps_.empty() ? 0 : steps_.back().step + 1; }
    Status status() const { return status_; }
    bool is_merged() const { return is_merged_; }
    bool has_living_writer() const { return has_living_writer_; }  ///< when it was opened; see writer_mark.hpp
    step::StepGraph read_graph();
    /// The n-th row of steps(), of a run of `graph`, with its events; `offset` is added to all times.
    step::StepRecord read_step(std::size_t n, Nanoseconds offset, std::int64_t multiplicity,
                               const step::StepGraph& graph);
    /// Closes the HDF5 file until it is needed again (there are limits on open files).
    void release();

private:
    [[noreturn]] void refuse(const std::string& what) const;
    bool open();  ///< true: its writer closed it in order
    void require_open();
    void read_description();
    void read_steps();
    void read_devices();
    template <class Row, class F>
    void read_table(hid_t table, hid_t type, hsize_t rows, const F& keep) const;
    void check_row(const StepRow& row) const;
    void read_events(const StepRow& row, const step::StepGraph& graph);
    void check_events(const StepRow& row, const step::StepGraph& graph) const;
    template <class T>
    T read_cell(const char* name, hid_t type) const;

    std::filesystem::path path_;
    std::string name_;
    Handle file_, events_, event_row_;
    hsize_t event_rows_ = 0;  ///< that finished steps have
    RunDescription run_;
    std::vector<RankDescription> ranks_;
    std::vector<StepRow> steps_;
    std::vector<DeviceRow> devices_;  ///< one for each of steps_, or none at all
    Status status_ = Status::running;
    Seal seal_ = Seal::none;
    bool is_merged_ = false;
    bool has_living_writer_ = false;
    std::vector<EventRow> buffer_;
};

}  // namespace lockstep::record
