#include "record/hdf5_handle.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "record/run_description.hpp"

namespace lockstep::record {

namespace {

herr_t keep_deepest(unsigned, const H5E_error2_t* error, void* reason) {
    if (error->desc != nullptr && *error->desc != '\0') *static_cast<std::string*>(reason) = error->desc;
    return 0;
}

/// What a user can do about the reasons that are seen in practice.
std::string remedy_for(const std::string& reason) {
    const auto says = [&](const char* words) { return reason.find(words) != std::string::npos; };
    if (says("errno = 11,") || says("errno = 37,") || says("errno = 524,") || says("unable to lock"))
        return "the file system refuses locks, or another process writes this file; on a shared disk set "
               "HDF5_USE_FILE_LOCKING=FALSE";
    if (says("No space left") || says("errno = 28,") || says("Disk quota") || says("errno = 122,"))
        return "free some space; the steps before it are kept";
    if (says("Permission denied") || says("Read-only")) return "choose a folder that can be written";
    if (says("File exists")) return "a run never overwrites another; choose another folder";
    if (says("No such file")) return "was the folder removed?";
    return "check the disk and the folder";
}

}  // namespace

void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

std::string hdf5_reason() {
    std::string reason;
    // Upward begins at the failing call and ends at the interface: the first message is the deepest.
    const auto keep_first = [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
        if (n == 0) keep_deepest(n, error, out);
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
    return reason.empty() ? "HDF5 gives no reason" : reason;
}

hid_t check(hid_t result, const std::string& what, const std::string& file, std::source_location where) {
    if (result >= 0) return result;
    const std::string reason = hdf5_reason();
    throw RuntimeError(fmt::format(
        "{}: can't {} ({}); {} [{}:{}]", file, what, reason, remedy_for(reason),
        std::string_view(where.file_name()).substr(std::string_view(where.file_name()).rfind('/') + 1), where.line()));
}

Handle untimed(hid_t property_class) {
    Handle creation(H5Pcreate(property_class), H5Pclose);
    H5Pset_obj_track_times(creation.get(), false);
    return creation;
}

std::string library_version() {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned release = 0;
    H5get_libversion(&major, &minor, &release);
    return fmt::format("HDF5 {}.{}.{}", major, minor, release);
}

}  // namespace lockstep::record
