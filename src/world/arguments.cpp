#include "world/arguments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace lockstep::world {

void check_rank(const World& world, int rank, const char* role) {
    if (rank < 0 || rank >= world.size())
        throw LogicError(fmt::format("{} {} is not a rank of a world of {}", role, rank, world.size()));
}

void check_numbers(std::size_t bytes, Number type) {
    if (bytes % size_of(type) != 0)
        throw LogicError(
            fmt::format("a reduction of {} bytes is no whole number of {}-byte numbers", bytes, size_of(type)));
}

void check_parts(const World& world, std::size_t whole, std::size_t part, const char* operation) {
    if (whole != part * static_cast<std::size_t>(world.size()))
        throw LogicError(fmt::format("{} of {} ranks has {} bytes in all but {} bytes a rank", operation, world.size(),
                                     whole, part));
}

void check_all_to_all(const World& world, std::size_t send, std::size_t receive) {
    if (send != receive || send % static_cast<std::size_t>(world.size()) != 0)
        throw LogicError(
            fmt::format("all_to_all of {} ranks sends {} and receives {} bytes", world.size(), send, receive));
}

void check_colour(int colour) {
    if (colour < 0) throw LogicError(fmt::format("split colour {} is negative", colour));
}

void check_messages(const World& world, std::span<const Send> sends, std::span<const Receive> receives) {
    for (const auto& s : sends) {
        check_rank(world, s.to, "receiver");
        if (s.tag < 0) throw LogicError(fmt::format("message tag {} is negative", s.tag));
    }
    for (const auto& r : receives) {
        check_rank(world, r.from, "sender");
        if (r.tag < 0) throw LogicError(fmt::format("message tag {} is negative", r.tag));
    }
}

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0)
        throw RuntimeError(fmt::format("cannot read the host name ({})", std::strerror(errno)));
    return name.data();
}

}  // namespace lockstep::world
