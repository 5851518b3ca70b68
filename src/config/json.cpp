#include "config/json.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace lockstep::config {

namespace {

using Written = nlohmann::ordered_json;

Written to_written(const Json& json);

struct Convert {
    Written operator()(std::monostate) const { return nullptr; }
    Written operator()(const Json::Array& items) const {
        Written array = Written::array();
        for (const Json& item : items) array.push_back(to_written(item));
        return array;
    }
    Written operator()(const Json::Object& members) const {
        Written object = Written::object();
        // Appended to the underlying vector: the map's own insertion would search all keys for each one.
        auto& vector = static_cast<Written::object_t::Container&>(object.get_ref<Written::object_t&>());
        for (const auto& [key, value] : members) vector.emplace_back(key, to_written(value));
        return object;
    }
    Written operator()(const auto& value) const { return value; }
};

Written to_written(const Json& json) { return std::visit(Convert{}, json.value()); }

}  // namespace

Json& Json::set(std::string_view key, Json value) {
    if (std::holds_alternative<std::monostate>(value_)) value_ = Object{};
    auto* const members = std::get_if<Object>(&value_);
    if (members == nullptr) throw LogicError("Json::set on a value that is no object");
    for (auto& [name, member] : *members)
        if (name == key) return member = std::move(value);
    return members->emplace_back(std::string(key), std::move(value)).second;
}

Json& Json::push(Json value) {
    if (std::holds_alternative<std::monostate>(value_)) value_ = Array{};
    auto* const items = std::get_if<Array>(&value_);
    if (items == nullptr) throw LogicError("Json::push on a value that is no array");
    return items->emplace_back(std::move(value));
}

std::string Json::dump(int indent) const {
    return to_written(*this).dump(indent, ' ', false, Written::error_handler_t::replace);
}

}  // namespace lockstep::config
