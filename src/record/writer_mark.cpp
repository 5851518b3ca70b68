#include "record/writer_mark.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "record/attributes.hpp"

namespace lockstep::record {

namespace {

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

/// Field 22 of /proc/PID/stat (proc(5)); none when there is no such process, or it has ended and only waits for its
/// parent.
std::optional<std::int64_t> start_of(std::int64_t pid) {
    std::ifstream stream(fmt::format("/proc/{}/stat", pid));
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    // The name in field 2 may hold spaces and parentheses; its end is the last of them.
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos) return std::nullopt;
    std::istringstream rest(text.substr(name_end + 1));
    const std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
    constexpr std::size_t state = 0;
    constexpr std::size_t start = 19;
    if (fields.size() <= start || fields[state] == "Z" || fields[state] == "X") return std::nullopt;
    return std::stoll(fields[start]);
}

}  // namespace

void mark_writer(hid_t file, const std::string& file_name) {
    write_attribute(file, "writer_host", host_name(), file_name);
    write_attribute(file, "writer_pid", static_cast<std::int64_t>(getpid()), file_name);
    write_attribute(file, "writer_start", start_of(getpid()).value_or(0), file_name);
}

bool is_writer_alive(hid_t file, const std::filesystem::path& path) {
    const auto pid = read_integer(file, "writer_pid");
    const auto start = read_integer(file, "writer_start");
    if (pid && start && read_text_attribute(file, "writer_host") == host_name()) return start_of(*pid) == start;
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(path, error);
    return !error && std::filesystem::file_time_type::clock::now() - changed < std::chrono::minutes(2);
}

}  // namespace lockstep::record
