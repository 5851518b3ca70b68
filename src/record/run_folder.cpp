// Folders of runs: their names, and whether a live HDF5 file may grow in them.
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/error.hpp"
#include "record/live_writer.hpp"

namespace lockstep::record {

namespace {

namespace fs = std::filesystem;

/// The name of a file system that does not keep the order of writes, which a live file needs; nullptr for others.
const char* unordered_file_system(const fs::path& folder) {
    struct statfs info {};
    if (statfs(folder.c_str(), &info) != 0) return nullptr;
    switch (static_cast<unsigned long>(info.f_type)) {
        case 0x6969UL: return "NFS";
        case 0x517BUL: return "SMB";
        case 0xFF534D42UL: return "CIFS";
        case 0xFE534D42UL: return "SMB2";
        case 0x65735546UL: return "FUSE";
        default: return nullptr;
    }
}

}  // namespace

fs::path rank_file(const fs::path& run_folder, int rank) { return run_folder / fmt::format("rank-{:05}.h5", rank); }

fs::path default_run_folder(const std::string& experiment, int ranks) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    const char* job = std::getenv("SLURM_JOB_ID");
    return fs::path("runs") /
           fmt::format("{}-{}r-{}{}{}", experiment, ranks, stamp, job == nullptr ? "" : "-", job == nullptr ? "" : job);
}

void make_run_folder(const fs::path& folder) {
    std::error_code error;
    const auto refuse = [&](const std::string& why) {
        throw InputError(fmt::format("{}: {}; choose another folder with --out", folder.string(), why));
    };
    if (fs::exists(folder, error)) {
        if (!fs::is_directory(folder, error)) refuse("a file of this name exists");
        if (!fs::is_empty(folder, error)) refuse("the folder exists and is not empty (a run never overwrites another)");
    }
    fs::create_directories(folder, error);
    if (error) refuse("can't make the folder (" + error.message() + ")");
    if (access(folder.c_str(), W_OK) != 0)
        refuse(std::string("the folder can't be written (") + std::strerror(errno) + ")");
    if (const char* name = unordered_file_system(folder))
        refuse(
            fmt::format("it is on {}, where a file can't be read safely while it grows; use a local or parallel file "
                        "system and copy the run afterwards",
                        name));
}

}  // namespace lockstep::record
