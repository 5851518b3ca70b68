// Ends the process where a program uses NCCL in a way that the real one answers with a hang or wrong numbers.
#pragma once

#include <fmt/format.h>

#include <cstdlib>

#include "gpu_double/control.hpp"

namespace lockstep::nccl_double {

template <class... Args>
[[noreturn]] void misuse(fmt::format_string<Args...> text, Args&&... args) {
    gpu_double::report_misuse("NCCL: " + fmt::format(text, std::forward<Args>(args)...));
    std::abort();
}

}  // namespace lockstep::nccl_double
