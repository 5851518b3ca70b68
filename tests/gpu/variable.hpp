// Environment variables for the length of a test: how the test double is told what to do.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace lockstep::gpu::testing {

class Variable {
public:
    Variable(std::string name, const std::string& value) : name_(std::move(name)) {
        if (const char* before = std::getenv(name_.c_str())) before_ = before;
        setenv(name_.c_str(), value.c_str(), 1);
    }
    ~Variable() {
        if (before_)
            setenv(name_.c_str(), before_->c_str(), 1);
        else
            unsetenv(name_.c_str());
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    std::string name_;
    std::optional<std::string> before_;
};

}  // namespace lockstep::gpu::testing
