// Misuse as it happens, and what a process leaves behind at its end.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>

#include "gpu_double/control.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr int exit_status = 97;

struct Checks {
    std::mutex mutex;
    std::vector<std::vector<std::string> (*)()> leaks;
    std::atomic<int> misuses{0};
};
Checks& checks() {
    static Checks& checks = *new Checks;
    return checks;
}

// Runs after the handlers and static destructors of all that was loaded later, so after the program's own.
void at_exit(int status, void*) {
    const ExitCheck check = controls()->exit_check;
    if (check == ExitCheck::never || (check == ExitCheck::unless_failed && status != 0)) return;
    std::size_t left = 0;
    for (const auto leaks : checks().leaks)
        for (const std::string& line : leaks()) {
            fmt::print(stderr, "test double: at exit: {}\n", line);
            ++left;
        }
    if (const int misuses = checks().misuses; misuses > 0)
        fmt::print(stderr, "test double: at exit: {} misuses were reported\n", misuses);
    std::fflush(nullptr);
    if (left > 0 || checks().misuses > 0) _exit(exit_status);
}

[[gnu::constructor]] void check_at_exit() { on_exit(at_exit, nullptr); }

}  // namespace

void report_misuse(const std::string& text) {
    fmt::print(stderr, "test double: misuse: {}\n", text);
    std::fflush(stderr);
    if (controls()->abort_on_misuse) std::abort();
    ++checks().misuses;
}

void add_leak_check(std::vector<std::string> (*leaks)()) {
    const std::lock_guard lock(checks().mutex);
    checks().leaks.push_back(leaks);
}

}  // namespace lockstep::gpu_double
