#include <fmt/format.h>

#include <algorithm>

#include "plan/space.hpp"

namespace lockstep::plan {

namespace {

template <class T>
void refuse_repeated(config::Object& search, std::string_view key, const std::vector<T>& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (std::find(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i]) !=
            values.begin() + static_cast<std::ptrdiff_t>(i))
            return search.error(key, "has a value twice; keep one");
}

template <class T>
std::vector<T> read_numbers(config::Object& search, std::string_view key, std::int64_t least, std::int64_t most) {
    std::vector<T> values;
    if (!search.has(key)) return values;
    const auto errors_before = search.diagnostics().count();
    const auto numbers = search.integers(key);
    if (search.diagnostics().count() != errors_before) return values;
    if (numbers.empty()) search.error(key, "an empty list (nothing would be searched); give a value or leave it out");
    for (const std::int64_t number : numbers) {
        if (number < least || number > most)
            search.error(key, fmt::format("{} is out of range; use values from {} to {}", number, least, most));
        else
            values.push_back(static_cast<T>(number));
    }
    refuse_repeated(search, key, values);
    return values;
}

std::vector<std::string> read_choices(config::Object& search, std::string_view key,
                                      const std::vector<std::string>& allowed) {
    if (!search.has(key)) return {};
    const auto errors_before = search.diagnostics().count();
    auto texts = search.texts(key);
    if (search.diagnostics().count() != errors_before) return {};
    if (texts.empty()) search.error(key, "an empty list (nothing would be searched); give a value or leave it out");
    for (const std::string& text : texts)
        if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
            search.error(key, fmt::format("'{}' is not one of {}{}", text, fmt::join(allowed, ", "),
                                          config::did_you_mean(text, allowed)));
    refuse_repeated(search, key, texts);
    return texts;
}

}  // namespace

SpaceRequest read_space(const config::Node& node, config::Diagnostics& diagnostics) {
    config::Object search(node, "search", diagnostics);
    SpaceRequest space;
    space.tp = read_numbers<int>(search, "tp", 1, max_ranks);
    space.pp = read_numbers<int>(search, "pp", 1, max_ranks);
    space.vpp = read_numbers<int>(search, "vpp", 1, max_ranks);
    space.cp = read_numbers<int>(search, "cp", 1, max_ranks);
    space.ep = read_numbers<int>(search, "ep", 1, max_ranks);
    space.zero = read_numbers<int>(search, "zero", 0, 3);
    space.microbatch = read_numbers<std::int64_t>(search, "microbatch", 1, max_global_batch);
    for (const std::string& text : read_choices(search, "recompute", {"none", "selective", "full"}))
        space.recompute.push_back(text == "full"        ? Recompute::full
                                  : text == "selective" ? Recompute::selective
                                                        : Recompute::none);
    for (const std::string& text : read_choices(search, "sequence_parallel", {"false", "true"}))
        space.sequence_parallel.push_back(text == "true");
    search.finish();
    return space;
}

}  // namespace lockstep::plan
