// A run for the tests of record/: a graph with an op of every kind, and steps whose numbers follow from (rank, step).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "record/run_description.hpp"
#include "record/run_reader.hpp"
#include "step/graph.hpp"
#include "step/span.hpp"

namespace lockstep::record::test {

/// A folder that is removed with all that is in it.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

/// One op of every kind, no field at its default. 2 ranks, 2 micro-batches. What it computes makes no sense.
step::StepGraph every_op_kind();

/// Every field set, doubles that aren't finite and a seed of 64 bits among them.
RunDescription full_description(int ranks);
RankDescription full_rank(int rank);  ///< rank 1's device is not sampled

/// `events` spans over the graph's ops; equal arguments give equal records.
step::StepRecord make_step(const step::StepGraph& graph, int rank, std::int64_t step, int events);

/// Writes steps 0 to steps[rank] of each rank as run_loop does, and closes the files with this status.
void write_run(const std::filesystem::path& folder, const step::StepGraph& graph, const std::vector<int>& steps,
               Status status = Status::complete, int events = 30);

/// Equal in every bit; a NaN loss equals another.
bool same(const step::StepRecord& a, const step::StepRecord& b);
/// All records of a run in the order the reader gives them.
std::vector<step::StepRecord> read_all(const RunReader& run);

/// What f() throws as InputError; "" when it throws nothing. Other exceptions pass.
template <class F>
std::string input_error(F f) {
    try {
        f();
    } catch (const InputError& error) { return error.what(); }
    return "";
}

std::vector<char> read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::vector<char>& bytes);

}  // namespace lockstep::record::test
