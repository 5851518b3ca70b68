// The forms of World that the contract tests are run for; each test program defines its own list.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace lockstep::world {

using RankBody = std::function<void(World&)>;

struct Form {
    std::string name;
    std::function<void(const RankBody&)> run;  ///< calls the body on every rank (of this process)
    SendMode sends = SendMode::synchronous;    ///< what it promises of messages
};

/// A body that runs on half of a world: the ranks of equal parity, in reversed order.
inline RankBody on_halves(const RankBody& body) {
    return [&body](World& w) { body(*w.split(w.rank() % 2, -w.rank())); };
}

/// Forms of this test program.
std::vector<Form> forms();

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span{values});
}
template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
    return std::as_writable_bytes(std::span{values});
}

}  // namespace lockstep::world
