// The extents of a tensor, outermost first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace lockstep {

/// Extents of a tensor, outermost first. An empty shape is a scalar with one element.
struct Shape {
    std::vector<std::int64_t> extents;

    Shape() = default;
    Shape(std::initializer_list<std::int64_t> e) : extents(e) {}
    explicit Shape(std::vector<std::int64_t> e) : extents(std::move(e)) {}

    bool operator==(const Shape&) const = default;
    std::size_t rank() const { return extents.size(); }
    std::int64_t operator[](std::size_t i) const { return extents[i]; }
    std::int64_t back() const { return extents.back(); }

    /// Product of all extents.
    std::int64_t elements() const {
        std::int64_t n = 1;
        for (auto e : extents) n *= e;
        return n;
    }
};

/// "[64, 3, 224, 224]"
std::string to_string(const Shape& shape);

}  // namespace lockstep
