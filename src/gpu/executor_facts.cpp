#include "gpu/executor_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nccl.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "gpu/nccl_check.hpp"

namespace lockstep::gpu {
namespace {

/// "layer12.qkv" -> "layer*.qkv"
std::string pattern_of(const std::string& name) {
    std::string pattern;
    for (const char c : name) {
        const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (is_digit && !pattern.empty() && pattern.back() == '*') continue;
        pattern += is_digit ? '*' : c;
    }
    return pattern;
}

std::string members_text(const NcclCommunicator& communicator) {
    constexpr std::size_t most = 64;
    const std::vector<std::string>& members = communicator.members();
    const std::vector<std::string> named(members.begin(),
                                         members.begin() + static_cast<long>(std::min(most, members.size())));
    const std::string more = members.size() > most ? fmt::format(" and {} more", members.size() - most) : "";
    return fmt::format("{} rank{}: {}{}", members.size(), members.size() == 1 ? "" : "s", fmt::join(named, ", "), more);
}

}  // namespace

std::string algorithms_text(const std::map<std::string, std::string>& algorithms) {
    std::map<std::string, std::vector<std::string>> names;  // by pattern
    std::map<std::string, std::set<std::string>> chosen;
    for (const auto& [name, algorithm] : algorithms) {
        names[pattern_of(name)].push_back(name);
        chosen[pattern_of(name)].insert(algorithm);
    }
    std::string text;
    for (const auto& [pattern, ops] : names) {
        if (ops.size() > 1 && chosen[pattern].size() == 1)
            text += fmt::format("{} ({} ops): {}\n", pattern, ops.size(), *chosen[pattern].begin());
        else
            for (const std::string& name : ops) text += fmt::format("{}: {}\n", name, algorithms.at(name));
    }
    return text;
}

std::map<std::string, std::string> nccl_facts(const std::vector<std::unique_ptr<NcclCommunicator>>& communicators) {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
    std::map<std::string, std::string> facts{
        {"nccl_version", fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)},
        {"nccl_algorithm", "not recorded"}};
    for (const auto& communicator : communicators)
        if (communicator) facts["communicator " + communicator->name()] = members_text(*communicator);
    return facts;
}

std::map<std::string, std::string> sampling_facts(const Sampling& sampling, int events_per_step) {
    const std::string chosen =
        sampling.is_decided()
            ? (sampling.every() == 1 ? "every step" : fmt::format("every k-th step, k = {}", sampling.every()))
            : fmt::format(
                  "every k-th step, k the least that keeps their cost below {:g} % of a step; decided after "
                  "the first {}: the steps that have spans tell it",
                  100 * Sampling::most_share, Sampling::measured_steps);
    return {{"spans", chosen},
            {"span_cost", fmt::format("{:.1f} us of a step with spans, for its {} events, measured",
                                      sampling.cost_of_a_step().value * 1e6, events_per_step)}};
}

}  // namespace lockstep::gpu
