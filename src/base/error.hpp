// The one exception hierarchy; each kind knows the exit code that `main` returns for it.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep {

enum class ExitCode : int {
    ok = 0,
    runtime_failure = 1,
    usage = 2,
    bad_input = 3,
    threshold_not_met = 4,
    incomplete_data = 5,
};

/// Base of everything lockstep throws. The message reads: what (why); what to do.
class Error : public std::runtime_error {
public:
    Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    ExitCode code() const { return code_; }

private:
    ExitCode code_;
};

/// Something outside the program failed: a disk, a network, a missing capability of this machine.
class RuntimeError final : public Error {
public:
    explicit RuntimeError(const std::string& message) : Error(ExitCode::runtime_failure, message) {}
};

/// The command line is wrong.
class UsageError final : public Error {
public:
    explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// A file or a value in it is wrong. The message may hold several lines, one for each error found.
class InputError final : public Error {
public:
    explicit InputError(const std::string& message) : Error(ExitCode::bad_input, message) {}
};

/// A threshold the user asked for is not met.
class ThresholdError final : public Error {
public:
    explicit ThresholdError(const std::string& message) : Error(ExitCode::threshold_not_met, message) {}
};

/// Data are readable but incomplete.
class IncompleteError final : public Error {
public:
    explicit IncompleteError(const std::string& message) : Error(ExitCode::incomplete_data, message) {}
};

/// A broken invariant of lockstep itself.
class LogicError final : public Error {
public:
    explicit LogicError(const std::string& message) : Error(ExitCode::runtime_failure, "internal error: " + message) {}
};

}  // namespace lockstep
