#include "machine/link_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.hpp"
#include "config/quantity.hpp"
#include "machine/topology_check.hpp"

namespace lockstep::machine {

using config::Node;

namespace {

constexpr std::array link_kinds{LinkKind::nvlink, LinkKind::pcie, LinkKind::socket, LinkKind::memory};

}  // namespace

void LinkReader::read(const Node& item) {
    const auto& parts = item.items();
    if (parts.size() < 3 || parts.size() > 5)
        return report(item, "a link wants [from, to, kind, count, rate], such as [gpu0, gpu3, nvlink, 2]");
    const auto from = read_ends(parts[0]);
    const auto to = read_ends(parts[1]);
    const auto kind = read_kind(parts[2]);
    const auto count = parts.size() > 3 ? read_count(parts[3]) : std::optional(1);
    if (!kind || !count) return;
    const auto rate = parts.size() > 4 ? read_rate(parts[4]) : default_rate(parts[2], *kind);
    if (!rate) return;
    for (const VertexId a : from)
        for (const VertexId b : to) {
            const Link link{a, b, *kind, *count, *count * *rate, {}};
            if (const auto fault = fault_of(link)) return report(item, *fault);
            topology_.links.push_back(link);
        }
}

void LinkReader::report(const Node& at, const std::string& message) const {
    diagnostics_.error(at.where(), "links: " + message);
}

std::optional<std::string> LinkReader::fault_of(const Link& link) const {
    const Vertex &a = topology_.vertices[link.a.index()], &b = topology_.vertices[link.b.index()];
    if (link.a == link.b) return fmt::format("{} is linked with itself", a.name);
    if (!can_join(link.kind, a.kind, b.kind))
        return fmt::format("{} can't join {} and {}", to_string(link.kind), a.name, b.name);
    const bool is_repeated = std::ranges::any_of(topology_.links, [&](const Link& l) {
        return l.kind == link.kind && ((l.a == link.a && l.b == link.b) || (l.a == link.b && l.b == link.a));
    });
    if (!is_repeated) return std::nullopt;
    return fmt::format("{} and {} are linked twice by {}; write one link with a count", a.name, b.name,
                       to_string(link.kind));
}

std::vector<VertexId> LinkReader::read_ends(const Node& node) const {
    std::vector<VertexId> ends;
    for (const Node& part : node.is_sequence() ? node.items() : std::vector<Node>{node})
        for (const VertexId id : read_range(part)) ends.push_back(id);
    return ends;
}

/// "gpu3" or "gpu0-7".
std::vector<VertexId> LinkReader::read_range(const Node& node) const {
    const std::string& text = node.text();
    const std::size_t digits = std::min(text.find_first_of("0123456789"), text.size());
    const char* const end = text.data() + text.size();
    int first = 0;
    auto parsed = std::from_chars(text.data() + digits, end, first);
    bool is_good = parsed.ec == std::errc{};
    int last = first;
    if (is_good && parsed.ptr != end && *parsed.ptr == '-') {
        parsed = std::from_chars(parsed.ptr + 1, end, last);
        is_good = parsed.ec == std::errc{};
    }
    if (!is_good || parsed.ptr != end || last < first || last - first > most_of_a_kind) {
        report(node, fmt::format("'{}' is no vertex; write a name such as gpu0 or a range such as gpu0-7", text));
        return {};
    }
    return find_range(node, text.substr(0, digits), first, last);
}

std::vector<VertexId> LinkReader::find_range(const Node& node, const std::string& kind_name, int first,
                                             int last) const {
    std::vector<VertexId> found;
    for (int i = first; i <= last; ++i) {
        const std::string name = fmt::format("{}{}", kind_name, i);
        const auto at = std::ranges::find(topology_.vertices, name, &Vertex::name);
        if (at == topology_.vertices.end()) {
            std::vector<std::string> names;
            for (const Vertex& v : topology_.vertices) names.push_back(v.name);
            report(node, fmt::format("no vertex '{}' (see `vertices`){}", name, config::did_you_mean(name, names)));
            return {};
        }
        found.push_back({static_cast<std::int32_t>(at - topology_.vertices.begin())});
    }
    return found;
}

std::optional<LinkKind> LinkReader::read_kind(const Node& node) const {
    std::vector<std::string> names;
    for (const LinkKind kind : link_kinds) {
        if (node.text() == to_string(kind)) return kind;
        names.emplace_back(to_string(kind));
    }
    report(node, fmt::format("'{}' is no kind of link{}; use one of {}", node.text(),
                             config::did_you_mean(node.text(), names), fmt::join(names, ", ")));
    return std::nullopt;
}

std::optional<int> LinkReader::read_count(const Node& node) const {
    const std::string& text = node.text();
    int count = 0;
    const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (ec == std::errc{} && ptr == text.data() + text.size() && count >= 1 && count <= most_of_a_kind) return count;
    report(node, fmt::format("a count of links is a whole number of at least 1, got '{}'", text));
    return std::nullopt;
}

std::optional<Bandwidth> LinkReader::read_rate(const Node& node) const {
    try {
        const Bandwidth rate = config::parse_bandwidth(node.text());
        if (rate.value > 0) return rate;
        report(node, "the rate of a link must be above 0");
    } catch (const InputError& error) { report(node, error.what()); }
    return std::nullopt;
}

std::optional<Bandwidth> LinkReader::default_rate(const Node& node, LinkKind kind) const {
    const Bandwidth rate = rates_.of(kind);
    if (rate.value > 0) return rate;
    report(node, fmt::format("the rate of a {0} link is not known; write rates: {{{0}: 20 GB/s}}", to_string(kind)));
    return std::nullopt;
}

}  // namespace lockstep::machine
