// Values whose fields are listed (fields, tag) as JSON text and back.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "config/document.hpp"
#include "config/json.hpp"
#include "record/enum_ranges.hpp"
#include "record/graph_fields.hpp"

namespace lockstep::record {

/// Builds the JSON object of a value from its field list.
struct Writing {
    config::Json object = config::Json::object();
    template <class T>
    void operator()(const char* name, T& value) {
        object.set(name, to_json(value));
    }
    template <class T>
    void added(const char* name, T& value) {
        (*this)(name, value);
    }

    template <class T>
    requires std::is_enum_v<T>
    static config::Json to_json(T& v) { return static_cast<std::int64_t>(v); }
    static config::Json to_json(bool& v) { return v; }
    // As text: JSON readers may take integers for doubles, and seeds use all 64 bits.
    static config::Json to_json(std::uint64_t& v) { return std::to_string(v); }
    template <std::signed_integral T>
    static config::Json to_json(T& v) {
        return static_cast<std::int64_t>(v);
    }
    // JSON has no word for what isn't finite.
    static config::Json to_json(double& v) {
        if (std::isfinite(v)) return v;
        return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
    }
    static config::Json to_json(std::string& v) { return v; }
    template <int B, int F, int S>
    static config::Json to_json(Quantity<B, F, S>& v) {
        return to_json(v.value);
    }
    template <class Tag>
    static config::Json to_json(Id<Tag>& v) {
        return static_cast<std::int64_t>(v.value);
    }
    static config::Json to_json(Nanoseconds& v) { return v.count; }
    static config::Json to_json(std::map<std::string, std::string>& v) {
        config::Json map = config::Json::object();
        for (auto& [key, text] : v) map.set(key, text);
        return map;
    }
    template <class T>
    static config::Json to_json(std::optional<T>& v) {
        return v ? to_json(*v) : config::Json();
    }
    template <class T>
    static config::Json to_json(std::vector<T>& v) {
        config::Json array = config::Json::array();
        for (auto& element : v) array.push(to_json(element));
        return array;
    }
    template <class... T>
    static config::Json to_json(std::variant<T...>& v) {
        return std::visit([](auto& alternative) { return tagged(alternative); }, v);
    }
    template <class T>
    static config::Json tagged(T& alternative) {
        if constexpr (std::is_same_v<T, step::Compute>)
            return to_json(alternative);
        else {
            Writing inner;
            inner.object.set("op", tag(&alternative));
            fields(inner, alternative);
            return inner.object;
        }
    }
    template <class T>
    requires std::is_class_v<T>
    static config::Json to_json(T& v) {
        Writing inner;
        fields(inner, v);
        return inner.object;
    }
};

/// Fills a value from a JSON object by its field list.
struct Reading {
    const config::Node& node;
    const std::string& file;

    template <class T>
    void operator()(const char* name, T& value) {
        const config::Node* child = node.find(name);
        if (child == nullptr) refuse(fmt::format("'{}' is missing", name));
        Reading{*child, file}.read(value);
    }
    /// A field that records before it don't have.
    template <class T>
    void added(const char* name, T& value) {
        if (node.find(name) != nullptr) (*this)(name, value);
    }

    [[noreturn]] void refuse(const std::string& what) const {
        throw InputError(
            fmt::format("{}: the record is not readable ({}); the file is damaged or not lockstep's", file, what));
    }

    template <class T>
    T number() const {
        T value{};
        const std::string& text = node.text();
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (!node.is_scalar() || error != std::errc() || end != text.data() + text.size())
            refuse(fmt::format("'{}' is no number", text));
        return value;
    }

    template <class T>
    requires std::is_enum_v<T>
    void read(T& v) {
        const auto ordinal = number<int>();
        if (ordinal < 0 || ordinal > static_cast<int>(last_choice(v)))
            refuse(fmt::format("{} is no known choice", ordinal));
        v = static_cast<T>(ordinal);
    }
    void read(bool& v) {
        v = node.text() == "true";
        if (!v && node.text() != "false") refuse("neither true nor false");
    }
    template <std::integral T>
    void read(T& v) {
        v = number<T>();
    }
    void read(double& v) { v = number<double>(); }
    void read(std::string& v) {
        if (!node.is_scalar()) refuse("no text where one is wanted");
        v = node.text();
    }
    template <int B, int F, int S>
    void read(Quantity<B, F, S>& v) {
        v.value = number<double>();
    }
    template <class Tag>
    void read(Id<Tag>& v) {
        v.value = number<std::int32_t>();
    }
    void read(Nanoseconds& v) { v.count = number<std::int64_t>(); }
    void read(std::map<std::string, std::string>& v) {
        if (!node.is_mapping()) refuse("no mapping where one is wanted");
        for (const auto& entry : node.entries()) Reading{entry.value, file}.read(v[entry.key]);
    }
    template <class T>
    void read(std::optional<T>& v) {
        if (!node.is_null()) read(v.emplace());
    }
    template <class T>
    void read(std::vector<T>& v) {
        if (!node.is_sequence()) refuse("no list where one is wanted");
        v.resize(node.items().size());
        for (std::size_t i = 0; i < v.size(); ++i) Reading{node.items()[i], file}.read(v[i]);
    }
    template <class... T>
    void read(std::variant<T...>& v) {
        const config::Node* op = node.find("op");
        if (op == nullptr || !(try_alternative<T>(op->text(), v) || ...)) refuse("an op of unknown kind");
    }
    template <class T, class V>
    bool try_alternative(const std::string& name, V& v) {
        if constexpr (std::is_same_v<T, step::Compute>) {
            step::Compute compute;
            if (!has_alternative(name, compute)) return false;
            read(compute);
            v = compute;
            return true;
        } else {
            if (name != tag(static_cast<const T*>(nullptr))) return false;
            fields(*this, v.template emplace<T>());
            return true;
        }
    }
    template <class... T>
    static bool has_alternative(const std::string& name, const std::variant<T...>&) {
        return ((name == tag(static_cast<const T*>(nullptr))) || ...);
    }
    template <class T>
    requires std::is_class_v<T>
    void read(T& v) { fields(*this, v); }
};

/// What a recorded text may hold: a graph of some 100,000 ops. Memory to read it is about 0.3 KiB a value.
inline constexpr config::ParseLimits recorded_limits{.bytes = std::size_t{256} << 20U, .nodes = 10'000'000};

/// One line of JSON.
template <class T>
std::string to_text(const T& value) {
    Writing writing;
    // The field lists serve reading too and take references to non-const; writing changes nothing.
    fields(writing, const_cast<T&>(value));
    std::string text = writing.object.dump(-1);
    // The one control character that JSON lets stand in a text and our parser doesn't.
    for (std::size_t i = text.find('\x7f'); i != std::string::npos; i = text.find('\x7f', i))
        text.replace(i, 1, "\\u007f");
    return text;
}

/// Throws InputError when a text that is about to be recorded could not be read back.
inline void require_readable(const std::string& text, const std::string& what) {
    // Keys and values, and what looks like them inside of texts.
    const auto nodes =
        std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; });
    if (text.size() <= recorded_limits.bytes && static_cast<std::size_t>(nodes) < recorded_limits.nodes) return;
    throw InputError(fmt::format(
        "{} is too large to record ({} MiB and {} values of at most {} MiB and {}); use fewer layers or micro-batches",
        what, text.size() >> 20U, nodes, recorded_limits.bytes >> 20U, recorded_limits.nodes));
}

/// Throws InputError naming `file` and the field.
template <class T>
T from_text(const std::string& text, const std::string& file) {
    const config::Node node = config::parse_text(text, file, recorded_limits);
    T value;
    Reading reading{node, file};
    fields(reading, value);
    return value;
}

}  // namespace lockstep::record
