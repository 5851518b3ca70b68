// The data folders of the source tree, for tests of what is shipped.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "machine/catalog.hpp"

namespace lockstep::machine::test {

inline config::DataPath shipped_data() {
    return config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR});
}

inline Machine shipped_machine(const std::string& name) { return load_machine(shipped_data(), name); }

/// 0, 1 ... n - 1
inline std::vector<int> first_gpus(int n) {
    std::vector<int> gpus(static_cast<std::size_t>(n));
    std::iota(gpus.begin(), gpus.end(), 0);
    return gpus;
}

}  // namespace lockstep::machine::test
