// What of the doubles a process used: distinct calls and kernels, for tests/gpu_double/coverage.py.
#pragma once

#include <string>

namespace lockstep::gpu_double {

/// Appends a line to the file that LOCKSTEP_DOUBLE_CALLS names, once per process: "call ncclAllReduce", "kernel NAME"
/// (registered), "launch NAME".
void note(const char* what, const std::string& name);

}  // namespace lockstep::gpu_double
