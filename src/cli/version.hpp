// What this program is and what it was built with.
#pragma once

#include <map>
#include <string>

namespace lockstep::cli {

std::string version_text();
/// Provenance entries: "lockstep", "mpi", "onednn", "hdf5", "compiler".
std::map<std::string, std::string> versions();

}  // namespace lockstep::cli
