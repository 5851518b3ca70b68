// A JSON value to write results with: ordered keys, exact integers, shortest round-trip doubles.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::config {

/// null, boolean, integer, double, text, array or object (keys in insertion order). Doubles that aren't finite are
/// written as null; an unsigned alternative holds only what exceeds INT64_MAX.
class Json {
public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;

    Json() = default;
    Json(std::nullptr_t) {}
    Json(std::same_as<bool> auto v) : value_(v) {}
    template <std::integral T>
    requires(!std::same_as<T, bool>) Json(T v) {
        if (std::in_range<std::int64_t>(v))
            value_ = static_cast<std::int64_t>(v);
        else
            value_ = static_cast<std::uint64_t>(v);
    }
    Json(double v) : value_(v) {}
    Json(const char* v) : value_(std::string(v)) {}
    Json(std::string v) : value_(std::move(v)) {}
    Json(std::string_view v) : value_(std::string(v)) {}
    Json(Array v) : value_(std::move(v)) {}
    Json(Object v) : value_(std::move(v)) {}

    static Json array() { return Json(Array{}); }
    static Json object() { return Json(Object{}); }

    /// Sets a key of an object (a null value becomes an object first); returns the stored value.
    Json& set(std::string_view key, Json value);
    /// Appends to an array (a null value becomes an array first); returns the stored value.
    Json& push(Json value);

    const auto& value() const { return value_; }
    /// Text with `indent` spaces, or on one line when negative. Invalid UTF-8 is replaced.
    std::string dump(int indent = 2) const;

private:
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object, std::uint64_t> value_;
};

}  // namespace lockstep::config
