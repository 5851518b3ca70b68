#include "record/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

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
    bool keeps_open = true;  ///< false: too many files to hold all of them open
    mutable std::vector<RecordedFile> files;
    std::vector<RankDescription> ranks;
    std::map<int, const RankDescription*> rank_of;
    mutable std::optional<step::StepGraph> graph;
    Status status = Status::running;
    std::int64_t steps = 0;
    std::int64_t most_steps = 0;  ///< of any rank
    bool is_alive = false;
    std::vector<std::string> remarks;
    std::vector<fs::path> leftovers;
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
    if (!is_executed(run.origin) || static_cast<int>(ranks.size()) == run.ranks) return;
    std::string missing;
    for (int rank = 0; rank < run.ranks; ++rank)
        if (std::none_of(ranks.begin(), ranks.end(), [&](const auto& r) { return r.rank == rank; }))
            missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    remarks.push_back(fmt::format("the files of rank {} are missing; the slowest rank may be among them", missing));
}

}  // namespace

namespace {

/// Below the usual limit of 1024 open files of a process.
constexpr std::size_t most_open_files = 256;

void require_same_run(const RunDescription& a, const RunDescription& b, const fs::path& folder) {
    if (a.series_text != b.series_text || a.ranks != b.ranks || a.origin != b.origin || a.seed != b.seed ||
        a.planned_steps != b.planned_steps || a.record_every != b.record_every)
        throw InputError(fmt::format("{}: holds rank files of different runs", folder.string()));
}

/// The rank files beside a run.h5; they are of its run, or the folder is refused.
std::vector<fs::path> leftovers_in(const fs::path& folder, const RecordedFile& merged) {
    if (!fs::is_directory(folder) || merged.path().filename() != "run.h5") return {};
    const auto files = rank_files_in(folder);
    for (const auto& path : files) {
        const RecordedFile file(path);
        require_same_run(merged.run(), file.run(), folder);
        for (const auto& rank : file.ranks())
            if (std::none_of(merged.ranks().begin(), merged.ranks().end(),
                             [&](const auto& one) { return one.rank == rank.rank; }))
                throw InputError(
                    fmt::format("{}: rank {} is not in the run.h5 beside it; move it elsewhere to read "
                                "run.h5",
                                path.string(), rank.rank));
    }
    return files;
}

}  // namespace

RunReader::RunReader(const fs::path& folder_or_file) : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.path = folder_or_file;
    const auto paths = files_of(folder_or_file);
    s.keeps_open = paths.size() <= most_open_files;
    s.files.reserve(paths.size());
    s.most_steps = 0;
    for (const auto& path : paths) {
        RecordedFile& file = s.files.emplace_back(path);
        if (!s.keeps_open) file.release();
        require_same_run(run(), file.run(), folder_or_file);
        if (file.is_merged() && paths.size() > 1)
            throw InputError(fmt::format("{}: a merged file has the name of a rank's; call it run.h5", path.string()));
        s.ranks.insert(s.ranks.end(), file.ranks().begin(), file.ranks().end());
        s.is_alive = s.is_alive || file.has_living_writer();
        s.most_steps = std::max(s.most_steps, file.step_count());
    }
    s.steps = s.most_steps;
    for (const auto& file : s.files) s.steps = std::min(s.steps, file.step_count());
    s.is_merged = s.files.front().is_merged();
    for (const auto& rank : s.ranks)
        if (!s.rank_of.emplace(rank.rank, &rank).second)
            throw InputError(fmt::format("{}: describes rank {} twice; remove the copy", s.path.string(), rank.rank));
    s.status = combined(s.files);
    s.leftovers = leftovers_in(folder_or_file, s.files.front());
    if (!s.leftovers.empty())
        s.remarks.push_back(fmt::format(
            "a killed merge left {} rank files beside run.h5, which holds all that they hold; they can be removed",
            s.leftovers.size()));
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
const std::vector<fs::path>& RunReader::leftover_files() const { return state_->leftovers; }
const step::StepGraph& RunReader::graph() const {
    if (!state_->graph) state_->graph = state_->files.front().read_graph();
    return *state_->graph;
}
const fs::path& RunReader::path() const { return state_->path; }
const std::vector<std::string>& RunReader::remarks() const { return state_->remarks; }

void RunReader::for_each(std::int64_t first, std::int64_t last,
                         const std::function<void(const step::StepRecord&)>& f) const {
    State& s = *state_;
    const auto visit = [&](RecordedFile& file, std::size_t n) {
        const StepRow& row = file.steps()[n];
        const auto rank = s.rank_of.find(row.rank);
        if (rank == s.rank_of.end())
            throw InputError(
                fmt::format("{}: step {} is of rank {}, which is not described", s.path.string(), row.step, row.rank));
        // Merged files are on rank 0's clock already.
        const Nanoseconds offset = s.is_merged ? Nanoseconds{0} : rank->second->clock_offset;
        const auto record = file.read_step(n, offset, rank->second->multiplicity, graph());
        if (!s.keeps_open) file.release();
        f(record);
    };
    first = std::max<std::int64_t>(first, 0);
    last = std::min(last, s.steps);
    if (s.is_merged) {
        const auto& rows = s.files.front().steps();
        auto row = std::lower_bound(rows.begin(), rows.end(), first,
                                    [](const StepRow& one, std::int64_t step) { return one.step < step; });
        for (; row != rows.end() && row->step < last; ++row)
            visit(s.files.front(), static_cast<std::size_t>(row - rows.begin()));
        return;
    }
    std::vector<RecordedFile*> by_rank;
    for (auto& file : s.files) by_rank.push_back(&file);
    std::sort(by_rank.begin(), by_rank.end(), [](const RecordedFile* a, const RecordedFile* b) {
        return a->ranks().front().rank < b->ranks().front().rank;
    });
    for (std::int64_t step = first; step < last; ++step)
        for (RecordedFile* file : by_rank) visit(*file, static_cast<std::size_t>(step));
}

}  // namespace lockstep::record
