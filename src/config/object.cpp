#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/document.hpp"
#include "config/quantity.hpp"

namespace lockstep::config {

namespace {

/// The value as a message shows it; long texts are cut.
std::string shown(const Node& node) {
    constexpr std::size_t longest = 60;
    switch (node.kind()) {
        case Node::Kind::null: return "nothing";
        case Node::Kind::sequence: return "a list";
        case Node::Kind::mapping: return "a mapping";
        case Node::Kind::scalar: break;
    }
    return node.text().size() <= longest ? "'" + node.text() + "'"
                                         : "a text of " + std::to_string(node.text().size()) + " bytes";
}

/// All of a plain scalar as a number; none when it is something else. A leading '+' is allowed.
template <class T>
std::optional<T> parse_number(const Node& node) {
    if (!node.is_scalar() || node.is_quoted()) return std::nullopt;
    std::string_view text = node.text();
    if (text.starts_with('+')) text.remove_prefix(1);
    if (text.starts_with('-') && node.text().starts_with('+')) return std::nullopt;
    T value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string range_text(std::int64_t min, std::int64_t max) {
    if (min == INT64_MIN && max == INT64_MAX) return "";
    if (max == INT64_MAX) return fmt::format(" of at least {}", min);
    if (min == INT64_MIN) return fmt::format(" of at most {}", max);
    return fmt::format(" from {} to {}", min, max);
}

std::string range_text(double min, double max) {
    if (min <= -1e300 && max >= 1e300) return "";
    if (max >= 1e300) return fmt::format(" of at least {:g}", min);
    if (min <= -1e300) return fmt::format(" of at most {:g}", max);
    return fmt::format(" from {:g} to {:g}", min, max);
}

std::string quote_hint(const Node& node) {
    return node.is_scalar() && node.is_quoted() ? " in quotes; leave them out" : "";
}

/// The value within [min, max]; reports anything else and returns the nearest allowed value to it (to 0 for no number).
template <class T>
T checked_number(Object& object, std::string_view key, const Node& node, T min, T max, std::string_view kind) {
    const auto value = parse_number<T>(node);
    const bool is_finite = value && (std::is_integral_v<T> || std::isfinite(static_cast<double>(*value)));
    if (is_finite && *value >= min && *value <= max) return *value;
    const std::string problem =
        fmt::format("{}: wants {}{}, got {}{}", key, kind, range_text(min, max), shown(node), quote_hint(node));
    object.diagnostics().error(node.where(), problem);
    return std::clamp(is_finite ? *value : T{}, min, max);
}

template <class Q>
Q checked_quantity(Object& object, std::string_view key, const Node& node, Q (*parse)(std::string_view), Q fallback) {
    try {
        if (node.is_scalar()) return parse(node.text());
        object.diagnostics().error(node.where(),
                                   fmt::format("{}: wants a number with a unit, got {}", key, shown(node)));
    } catch (const InputError& failure) {
        object.diagnostics().error(node.where(), fmt::format("{}: {}", key, failure.what()));
    }
    return fallback;
}

/// The items of a list, or a single value as a list of one.
std::vector<Node> as_list(const Node& node) { return node.is_sequence() ? node.items() : std::vector<Node>{node}; }

constexpr std::string_view whole_number = "a whole number";
constexpr std::string_view plain_number = "a number";

}  // namespace

Object::Object(const Node& node, std::string what, Diagnostics& diagnostics)
    : node_(node), what_(std::move(what)), diagnostics_(diagnostics) {
    if (!node_.is_mapping() && !node_.is_null())
        diagnostics_.error(node_.where(),
                           fmt::format("{}: wants keys and values (key: value), got {}", what_, shown(node_)));
}

const Node* Object::take(std::string_view key) {
    if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
    return node_.find(key);
}

const Node* Object::require(std::string_view key) {
    const Node* const node = take(key);
    const bool is_object = node_.is_mapping() || node_.is_null();  // anything else was reported already
    if (node == nullptr && is_object)
        diagnostics_.error(node_.where(), fmt::format("{}: key '{}' is missing", what_, key));
    return node;
}

bool Object::has(std::string_view key) { return take(key) != nullptr; }

std::string Object::text(std::string_view key) { return require(key) == nullptr ? "" : text_or(key, ""); }

std::string Object::text_or(std::string_view key, std::string fallback) {
    const Node* const node = take(key);
    if (node == nullptr) return fallback;
    if (node->is_scalar() && !node->text().empty()) return node->text();
    diagnostics_.error(node->where(), fmt::format("{}: wants a text, got {}", key, shown(*node)));
    return fallback;
}

std::int64_t Object::integer(std::string_view key, std::int64_t min, std::int64_t max) {
    const Node* const node = require(key);
    if (node == nullptr) return std::clamp<std::int64_t>(0, min, max);
    return checked_number(*this, key, *node, min, max, whole_number);
}

std::int64_t Object::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_number(*this, key, *node, min, max, whole_number);
}

double Object::number(std::string_view key, double min, double max) {
    const Node* const node = require(key);
    return node == nullptr ? std::clamp(0.0, min, max) : checked_number(*this, key, *node, min, max, plain_number);
}

double Object::number_or(std::string_view key, double fallback, double min, double max) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_number(*this, key, *node, min, max, plain_number);
}

bool Object::flag_or(std::string_view key, bool fallback) {
    const Node* const node = take(key);
    if (node == nullptr) return fallback;
    const std::string& text = node->text();
    if (!node->is_quoted() && (text == "true" || text == "True" || text == "TRUE")) return true;
    if (!node->is_quoted() && (text == "false" || text == "False" || text == "FALSE")) return false;
    diagnostics_.error(node->where(),
                       fmt::format("{}: wants true or false, got {}{}", key, shown(*node), quote_hint(*node)));
    return fallback;
}

Bytes Object::bytes(std::string_view key) { return require(key) == nullptr ? Bytes{} : bytes_or(key, {}); }

Bytes Object::bytes_or(std::string_view key, Bytes fallback) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_quantity(*this, key, *node, parse_bytes, fallback);
}

Seconds Object::seconds(std::string_view key) { return require(key) == nullptr ? Seconds{} : seconds_or(key, {}); }

Seconds Object::seconds_or(std::string_view key, Seconds fallback) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_quantity(*this, key, *node, parse_seconds, fallback);
}

Bandwidth Object::bandwidth(std::string_view key) {
    return require(key) == nullptr ? Bandwidth{} : bandwidth_or(key, {});
}

Bandwidth Object::bandwidth_or(std::string_view key, Bandwidth fallback) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_quantity(*this, key, *node, parse_bandwidth, fallback);
}

FlopRate Object::flop_rate(std::string_view key) {
    return require(key) == nullptr ? FlopRate{} : flop_rate_or(key, {});
}

FlopRate Object::flop_rate_or(std::string_view key, FlopRate fallback) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_quantity(*this, key, *node, parse_flop_rate, fallback);
}

Watts Object::watts_or(std::string_view key, Watts fallback) {
    const Node* const node = take(key);
    return node == nullptr ? fallback : checked_quantity(*this, key, *node, parse_watts, fallback);
}

std::vector<std::int64_t> Object::integers(std::string_view key) {
    std::vector<std::int64_t> values;
    for (const Node& item : nodes(key))
        values.push_back(checked_number<std::int64_t>(*this, key, item, INT64_MIN, INT64_MAX, whole_number));
    return values;
}

std::vector<std::string> Object::texts(std::string_view key) {
    std::vector<std::string> values;
    for (const Node& item : nodes(key)) {
        if (!item.is_scalar() || item.text().empty())
            diagnostics_.error(item.where(), fmt::format("{}: wants a text, got {}", key, shown(item)));
        values.push_back(item.text());
    }
    return values;
}

std::optional<Node> Object::node(std::string_view key) {
    const Node* const node = take(key);
    return node == nullptr ? std::nullopt : std::optional(*node);
}

std::vector<Node> Object::nodes(std::string_view key) {
    const Node* const node = require(key);
    return node == nullptr ? std::vector<Node>{} : as_list(*node);
}

std::string Object::choice_or(std::string_view key, const std::vector<std::string>& allowed, std::string fallback) {
    const Node* const node = take(key);
    if (node == nullptr) return fallback;
    if (node->is_scalar() && std::ranges::find(allowed, node->text()) != allowed.end()) return node->text();
    diagnostics_.error(node->where(), fmt::format("{}: wants one of {}, got {}{}", key, fmt::join(allowed, ", "),
                                                  shown(*node), did_you_mean(node->text(), allowed)));
    return fallback;
}

void Object::error(std::string_view key, const std::string& message) {
    for (const auto& entry : node_.entries())
        if (entry.key == key) return diagnostics_.error(entry.value.where(), fmt::format("{}: {}", key, message));
    diagnostics_.error(node_.where(), fmt::format("{}: {}", what_, message));
}

void Object::finish() {
    for (const auto& entry : node_.entries()) {
        if (std::ranges::find(known_, entry.key) != known_.end()) continue;
        const std::string hint = nearest(entry.key, known_) ? did_you_mean(entry.key, known_)
                                                            : fmt::format("; known keys: {}", fmt::join(known_, ", "));
        diagnostics_.error(entry.where, fmt::format("{}: unknown key '{}'{}", what_, entry.key, hint));
    }
}

}  // namespace lockstep::config
