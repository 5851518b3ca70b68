// The progress line on stderr: redrawn on a terminal, a few plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::drive {

class Progress {
public:
    enum class Mode { silent, lines, redrawn };
    /// Redrawn on a terminal, lines (at most about ten for the whole run) when stderr is a file or a pipe.
    static Mode mode_for_stderr();

    /// "TITLE: UNIT 3/50 NOTE".
    Progress(Mode mode, std::string title, std::int64_t total, std::string unit = "step");
    /// There is more to do than was known.
    void expect(std::int64_t total) { total_ = total; }
    void show(std::int64_t done, const std::string& note);
    void finish();

private:
    Mode mode_;
    std::string title_, unit_;
    std::int64_t total_;
    std::int64_t last_tenth_ = -1;
    std::size_t drawn_ = 0;
    std::chrono::steady_clock::time_point last_drawn_{};
};

}  // namespace lockstep::drive
