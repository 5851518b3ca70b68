#include "gpu_double/control.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>

#include "gpu_double/runtime/coverage.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr const char* prefix = "LOCKSTEP_DOUBLE_";

// All variables that control the doubles, as one text.
std::string variables() {
    std::string text;
    for (char** entry = environ; *entry; ++entry)
        if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0 ||
            std::strncmp(*entry, "CUDA_VISIBLE_DEVICES=", 21) == 0)
            text.append(*entry).push_back('\n');
    return text;
}

std::optional<std::string> value(const std::string& name) {
    const char* text = std::getenv((prefix + name).c_str());
    return text ? std::optional<std::string>(text) : std::nullopt;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

Controls read() {
    Controls c;
    if (const auto text = value("DRIVER")) c.driver = *text == "none" ? 0 : std::stoi(*text);
    if (const auto text = value("DEVICES")) c.devices = std::stoi(*text);
    if (const auto text = value("NAME")) c.name = *text;
    c.mig = value("MIG") == "1";
    if (const auto text = value("MEMORY")) c.memory = std::stoull(*text);
    for (const std::string& node : split(value("NUMA").value_or(""), ',')) c.numa.push_back(std::stoi(node));
    if (const auto text = value("THROTTLE")) c.throttle = std::stoull(*text);
    if (const auto text = value("DELAY")) c.delay = std::chrono::microseconds(std::stoll(*text));
    c.abort_on_misuse = value("MISUSE") == "abort";
    const std::string exit = value("EXIT").value_or("");
    c.exit_check = exit == "always" ? ExitCheck::always : exit == "never" ? ExitCheck::never : ExitCheck::unless_failed;
    if (const char* text = std::getenv("CUDA_VISIBLE_DEVICES")) c.visible = text;
    c.fail = value("FAIL").value_or("");
    c.hang = value("HANG").value_or("");
    return c;
}

// One entry of FAIL or HANG.
struct Rule {
    std::string function;
    int call = 0;
    std::optional<int> code;
};

// Rules for this process, of "function:n[:code][@rank],...".
std::vector<Rule> rules_of(const std::string& text) {
    const char* own_rank = std::getenv("OMPI_COMM_WORLD_RANK");
    std::vector<Rule> rules;
    for (const std::string& entry : split(text, ',')) {
        const std::vector<std::string> at = split(entry, '@'), part = split(at[0], ':');
        if (at.size() > 1 && at[1] != (own_rank ? own_rank : "0")) continue;
        Rule rule{part.at(0), std::stoi(part.at(1)), {}};
        if (part.size() > 2) rule.code = std::stoi(part[2]);
        rules.push_back(rule);
    }
    return rules;
}

struct Calls {
    std::mutex mutex;
    std::string fail_text, hang_text;
    std::vector<Rule> fail, hang;
    std::map<std::string, int> count;
};
Calls& calls() {
    static Calls& calls = *new Calls;  // streams' threads use it to the process's end
    return calls;
}

}  // namespace

std::shared_ptr<const Controls> controls() {
    static std::mutex& mutex = *new std::mutex;
    static std::string& known = *new std::string("-");
    static auto& current = *new std::shared_ptr<const Controls>;
    const std::lock_guard lock(mutex);
    if (std::string now = variables(); now != known) {
        current = std::make_shared<const Controls>(read());
        known = std::move(now);
    }
    return current;
}

Fate double_call(const char* function) {
    note("call", function);
    const auto now = controls();
    Calls& c = calls();
    const std::lock_guard lock(c.mutex);
    if (now->fail != c.fail_text || now->hang != c.hang_text) {
        c.fail_text = now->fail;
        c.hang_text = now->hang;
        c.fail = rules_of(now->fail);
        c.hang = rules_of(now->hang);
        c.count.clear();
    }
    if (c.fail.empty() && c.hang.empty()) return {};
    const int call = ++c.count[function];
    Fate fate;
    for (const Rule& rule : c.fail)
        if (rule.function == function && rule.call == call) fate = {true, rule.code, fate.hangs};
    for (const Rule& rule : c.hang)
        if (rule.function == function && rule.call == call) fate.hangs = true;
    return fate;
}

}  // namespace lockstep::gpu_double
