#include "drive/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace lockstep::drive {

Progress::Mode Progress::mode_for_stderr() { return isatty(STDERR_FILENO) != 0 ? Mode::redrawn : Mode::lines; }

Progress::Progress(Mode mode, std::string title, std::int64_t total, std::string unit)
    : mode_(mode), title_(std::move(title)), unit_(std::move(unit)), total_(total) {}

void Progress::show(std::int64_t done, const std::string& note) {
    if (mode_ == Mode::silent || total_ <= 0) return;
    const std::string line = fmt::format("{}: {} {}/{} {}", title_, unit_, done, total_, note);
    if (mode_ == Mode::redrawn) {
        const auto now = std::chrono::steady_clock::now();
        if (done != total_ && now - last_drawn_ < std::chrono::milliseconds(100)) return;
        last_drawn_ = now;
        const std::string padding(drawn_ > line.size() ? drawn_ - line.size() : 0, ' ');
        fmt::print(stderr, "\r{}{}", line, padding);
        drawn_ = line.size();
    } else {
        const std::int64_t tenth = done * 10 / total_;
        if (tenth == last_tenth_) return;
        last_tenth_ = tenth;
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

void Progress::finish() {
    if (mode_ == Mode::redrawn && drawn_ > 0) fmt::print(stderr, "\n");
    drawn_ = 0;
}

}  // namespace lockstep::drive
