#include "record/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "record/live_writer.hpp"
#include "record/recorded_file.hpp"

namespace lockstep::record {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> rank_files_in(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name.rfind("rank-", 0) == 0 && entry.path().extension() == ".h5") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<fs::path> files_of(const fs::path& path) {
    if (!fs::exists(path)) throw InputError(fmt::format("{}: no such run", path.string()));
    if (!fs::is_directory(path)) return {path};
    if (fs::exists(path / "run.h5")) return {path / "run.h5"};
    auto files = rank_files_in(path);
    if (files.empty())
        throw InputError(fmt::format("{}: no run in this folder (neither run.h5 nor rank-*.h5)", path.string()));
    return files;
}

/// Of several ranks: the worst that any of them says.
Status combined(const std::vector<RecordedFile>& files) {
    const auto any = [&](Status status) {
        return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.status() == status; });
    };
    for (const Status status : {Status::failed, Status::interrupted, Status::running})
        if (any(status)) return status;
    return Status::complete;
}

}  // namespace

struct RunReader::State {
    fs::path path;
    bool is_merged = false;
    mutable std::vector<RecordedFile> files;
    std::vector<RankDescription> ranks;
    std::map<int, const RankDescription*> rank_of;
    step::StepGraph graph;
    Status status = Status::running;
    std::int64_t steps = 0;
    std::int64_t most_steps = 0;  ///< of any rank
    bool is_alive = false;
    std::vector<std::string> remarks;
};

namespace {

void add_remarks(std::vector<std::string>& remarks, const RunDescription& run, Status status, bool is_alive,
                 std::int64_t steps, const std::vector<RankDescription>& ranks) {
    if (status == Status::running && is_alive)
        remarks.push_back(fmt::format("still running: {} of {} steps so far", steps, run.planned_steps));
    else if (status == Status::running)
        remarks.push_back(fmt::format("killed: {} of {} steps are finished and kept", steps, run.planned_steps));
    else if (status != Status::complete)
        remarks.push_back(fmt::format("{} at step {} of {}", to_string(status), steps, run.planned_steps));
    if (run.origin != Origin::measured || static_cast<int>(ranks.size()) == run.ranks) return;
    std::string missing;
    for (int rank = 0; rank < run.ranks; ++rank)
        if (std::none_of(ranks.begin(), ranks.end(), [&](const auto& r) { return r.rank == rank; }))
            missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    remarks.push_back(fmt::format("the files of rank {} are missing; the slowest rank may be among them", missing));
}

}  // namespace

RunReader::RunReader(const fs::path& folder_or_file) : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.path = folder_or_file;
    const auto paths = files_of(folder_or_file);
    for (const auto& path : paths) s.files.emplace_back(path);
    s.is_merged = paths.front().filename() == "run.h5" || s.files.front().ranks().size() > 1;
    s.graph = s.files.front().read_graph();
    for (auto& file : s.files) {
        file.prepare_events(s.graph);
        s.ranks.insert(s.ranks.end(), file.ranks().begin(), file.ranks().end());
        s.is_alive = s.is_alive || file.has_living_writer();
        if (file.run().series_text != run().series_text || file.run().ranks != run().ranks)
            throw InputError(fmt::format("{}: holds rank files of different runs", folder_or_file.string()));
    }
    for (const auto& rank : s.ranks) s.rank_of[rank.rank] = &rank;
    s.status = combined(s.files);
    if (s.is_merged) {
        const auto& rows = s.files.front().steps();
        s.steps = rows.empty() ? 0 : rows.back().step + 1;
        s.most_steps = s.steps;
    } else {
        s.steps = static_cast<std::int64_t>(s.files.front().steps().size());
        for (const auto& file : s.files) {
            s.steps = std::min(s.steps, static_cast<std::int64_t>(file.steps().size()));
            s.most_steps = std::max(s.most_steps, static_cast<std::int64_t>(file.steps().size()));
        }
    }
    add_remarks(s.remarks, run(), s.status, s.is_alive, s.steps, s.ranks);
}

RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;
RunReader& RunReader::operator=(RunReader&&) noexcept = default;

const RunDescription& RunReader::run() const { return state_->files.front().run(); }
const std::vector<RankDescription>& RunReader::ranks() const { return state_->ranks; }
Status RunReader::status() const { return state_->status; }
std::int64_t RunReader::steps() const { return state_->steps; }
std::int64_t RunReader::most_steps() const { return state_->most_steps; }
bool RunReader::is_alive() const { return state_->is_alive; }
bool RunReader::is_merged() const { return state_->is_merged; }
const step::StepGraph& RunReader::graph() const { return state_->graph; }
const fs::path& RunReader::path() const { return state_->path; }
const std::vector<std::string>& RunReader::remarks() const { return state_->remarks; }

void RunReader::for_each(std::int64_t first, std::int64_t last,
                         const std::function<void(const step::StepRecord&)>& f) const {
    State& s = *state_;
    const std::int32_t ops = s.graph.op_count();
    const auto visit = [&](RecordedFile& file, const StepRow& row) {
        const auto rank = s.rank_of.find(row.rank);
        if (rank == s.rank_of.end())
            throw InputError(
                fmt::format("{}: step {} is of rank {}, which is not described", s.path.string(), row.step, row.rank));
        // Merged files are on rank 0's clock already.
        const Nanoseconds offset = s.is_merged ? Nanoseconds{0} : rank->second->clock_offset;
        f(file.read_step(row, offset, rank->second->multiplicity, ops));
    };
    last = std::min(last, s.steps);
    if (s.is_merged) {
        for (const StepRow& row : s.files.front().steps())
            if (row.step >= first && row.step < last) visit(s.files.front(), row);
        return;
    }
    for (std::int64_t step = std::max<std::int64_t>(first, 0); step < last; ++step)
        for (auto& file : s.files) visit(file, file.steps()[static_cast<std::size_t>(step)]);
}

}  // namespace lockstep::record
