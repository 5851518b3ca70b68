#include "config/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace lockstep::config {

std::string to_string(const Location& location) {
    std::string text = location.file;
    if (location.line > 0) text += fmt::format("{}{}", text.empty() ? "line " : ":", location.line);
    if (location.line > 0 && location.column > 0) text += fmt::format(":{}", location.column);
    return text;
}

void Diagnostics::error(const Location& where, const std::string& message) {
    const std::string place = to_string(where);
    errors_.push_back(place.empty() ? message : place + ": " + message);
}

void Diagnostics::throw_if_any() const {
    if (!has_errors()) return;
    const auto shown = std::min(count(), max_shown_errors);
    std::string text =
        fmt::format("{}", fmt::join(errors_.begin(), errors_.begin() + static_cast<std::ptrdiff_t>(shown), "\n"));
    if (shown < count()) text += fmt::format("\n... and {} more errors", count() - shown);
    throw InputError(text);
}

struct Node::Data {
    Kind kind = Kind::null;
    Quoting quoting = Quoting::plain;
    Location where;
    std::string text;
    std::vector<Node> items;
    std::vector<Entry> entries;
    std::vector<std::size_t> by_key;  ///< indices of `entries`, sorted by key
};

Node::Node() {
    static const auto null_data = std::make_shared<const Data>();
    data_ = null_data;
}

Node Node::make_null(Location where) {
    auto data = std::make_shared<Data>();
    data->where = std::move(where);
    return Node(std::move(data));
}

Node Node::make_scalar(std::string text, Location where, Quoting quoting) {
    auto data = std::make_shared<Data>();
    data->kind = Kind::scalar;
    data->quoting = quoting;
    data->where = std::move(where);
    data->text = std::move(text);
    return Node(std::move(data));
}

Node Node::make_sequence(std::vector<Node> items, Location where) {
    auto data = std::make_shared<Data>();
    data->kind = Kind::sequence;
    data->where = std::move(where);
    data->items = std::move(items);
    return Node(std::move(data));
}

Node Node::make_mapping(std::vector<Entry> entries, Location where) {
    auto data = std::make_shared<Data>();
    data->kind = Kind::mapping;
    data->where = std::move(where);
    data->entries = std::move(entries);
    data->by_key.resize(data->entries.size());
    std::iota(data->by_key.begin(), data->by_key.end(), std::size_t{0});
    const auto key = [&](std::size_t i) -> const std::string& { return data->entries[i].key; };
    std::ranges::sort(data->by_key, {}, key);
    const auto twice = std::ranges::adjacent_find(data->by_key, {}, key);
    if (twice != data->by_key.end()) throw LogicError("a mapping with key '" + key(*twice) + "' twice");
    return Node(std::move(data));
}

Node::Kind Node::kind() const { return data_->kind; }
const Location& Node::where() const { return data_->where; }
const std::string& Node::text() const { return data_->text; }
bool Node::is_quoted() const { return data_->quoting == Quoting::quoted; }
const std::vector<Node>& Node::items() const { return data_->items; }
const std::vector<Node::Entry>& Node::entries() const { return data_->entries; }

const Node* Node::find(std::string_view key) const {
    const auto key_of = [&](std::size_t i) -> std::string_view { return data_->entries[i].key; };
    const auto at = std::ranges::lower_bound(data_->by_key, key, {}, key_of);
    return at != data_->by_key.end() && key_of(*at) == key ? &data_->entries[*at].value : nullptr;
}

namespace {

std::size_t sequence_index(std::string_view text, std::size_t size) {
    std::size_t index = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (failure != std::errc{} || end != text.data() + text.size() || index >= size)
        throw InputError(fmt::format("'{}' is no place in a list of {}; count from 0", text, size));
    return index;
}

Json scalar_json(const Node& node) {
    const std::string& text = node.text();
    if (node.is_quoted()) return text;
    if (text == "true" || text == "false") return text == "true";
    const char* const last = text.data() + text.size();
    std::int64_t whole = 0;
    if (const auto [end, failure] = std::from_chars(text.data(), last, whole); failure == std::errc{} && end == last)
        return whole;
    double number = 0;
    if (const auto [end, failure] = std::from_chars(text.data(), last, number);
        failure == std::errc{} && end == last && std::isfinite(number))
        return number;
    return text;
}

enum class KeyOrder { of_file, sorted };

Json to_json(const Node& node, KeyOrder order) {
    switch (node.kind()) {
        case Node::Kind::null: return nullptr;
        case Node::Kind::scalar: return scalar_json(node);
        case Node::Kind::sequence: {
            Json::Array items;
            for (const Node& item : node.items()) items.push_back(to_json(item, order));
            return items;
        }
        case Node::Kind::mapping: {
            Json::Object members;
            for (const auto& entry : node.entries()) members.emplace_back(entry.key, to_json(entry.value, order));
            if (order == KeyOrder::sorted) std::ranges::sort(members, {}, &std::pair<std::string, Json>::first);
            return members;
        }
    }
    return nullptr;
}

}  // namespace

Node Node::with(std::string_view path, const Node& value) const {
    const auto dot = path.find('.');
    const std::string_view head = path.substr(0, dot);
    if (head.empty())
        throw InputError("a path has an empty part; write names with single dots between, as plan.bucket");
    if (is_scalar())
        throw InputError(fmt::format("can't set '{}' ('{}' is a single value there, not a mapping)", path, text()));
    const auto changed = [&](const Node& old) {
        return dot == std::string_view::npos ? value : old.with(path.substr(dot + 1), value);
    };
    if (is_sequence()) {
        std::vector<Node> copy = items();
        Node& item = copy[sequence_index(head, copy.size())];
        item = changed(item);
        return make_sequence(std::move(copy), where());
    }
    std::vector<Entry> copy = entries();
    const auto at = std::ranges::find(copy, head, &Entry::key);
    if (at != copy.end()) {
        at->value = changed(at->value);
        at->where = value.where();
    } else {
        copy.push_back({std::string(head), value.where(), changed(make_null(value.where()))});
    }
    return make_mapping(std::move(copy), is_null() ? value.where() : where());
}

std::string Node::canonical() const { return to_json(*this, KeyOrder::sorted).dump(-1); }
Json Node::json() const { return to_json(*this, KeyOrder::of_file); }

}  // namespace lockstep::config
