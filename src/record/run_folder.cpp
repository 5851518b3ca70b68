// Folders of runs: their names, and whether a live HDF5 file may grow in them.
#include <fcntl.h>
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

[[noreturn]] void refuse(const fs::path& folder, const std::string& why) {
    throw InputError(fmt::format("{}: {}; choose another folder with --out", folder.string(), why));
}

/// Letters, digits, dot, dash and underscore as they are; a dash for anything else.
std::string as_file_name(std::string name) {
    for (char& c : name) {
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
        if (!is_plain) c = '-';
    }
    return name;
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
    return fs::path("runs") / fmt::format("{}-{}r-{}{}{}", as_file_name(experiment), ranks, stamp,
                                          job == nullptr ? "" : "-", job == nullptr ? "" : job);
}

void make_empty_folder(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder, error)) {
        if (!fs::is_directory(folder, error)) refuse(folder, "a file of this name exists");
        if (!fs::is_empty(folder, error))
            refuse(folder, "the folder exists and is not empty (a run never overwrites another)");
    }
    fs::create_directories(folder, error);
    if (error) refuse(folder, "can't make the folder (" + error.message() + ")");
    // Asking for permission is not enough: root has it on a disk that is mounted read-only.
    const fs::path probe = folder / ".lockstep-probe";
    const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) refuse(folder, std::string("the folder can't be written (") + std::strerror(errno) + ")");
    close(descriptor);
    unlink(probe.c_str());
}

void make_run_folder(const fs::path& folder) {
    make_empty_folder(folder);
    if (const char* name = unordered_file_system(folder))
        refuse(folder,
               fmt::format("it is on {}, where a file can't be read safely while it grows; use a local or parallel "
                           "file system and copy the run afterwards",
                           name));
}

}  // namespace lockstep::record
