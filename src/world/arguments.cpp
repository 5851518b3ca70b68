#include "world/arguments.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/error.hpp"

namespace lockstep::world {

namespace {

void check_lengths(const World& world, std::size_t whole, std::span<const std::size_t> parts, const char* verb) {
    const auto total = std::accumulate(parts.begin(), parts.end(), std::size_t{0});
    if (parts.size() != static_cast<std::size_t>(world.size()) || total != whole)
        throw LogicError(fmt::format("all_to_all_v of {} ranks {} {} bytes in {} parts of {} bytes in all",
                                     world.size(), verb, whole, parts.size(), total));
}

}  // namespace

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

PartMessages messages_of_parts(const World& world, std::span<const std::byte> send,
                               std::span<const std::size_t> send_bytes, std::span<std::byte> receive,
                               std::span<const std::size_t> receive_bytes, int tag) {
    check_lengths(world, send.size(), send_bytes, "sends");
    check_lengths(world, receive.size(), receive_bytes, "receives");
    PartMessages messages;
    std::size_t sent = 0, received = 0;
    for (int peer = 0; peer < world.size(); ++peer) {
        messages.sends.push_back({send.subspan(sent, send_bytes[peer]), peer, tag});
        messages.receives.push_back({receive.subspan(received, receive_bytes[peer]), peer, tag});
        sent += send_bytes[peer];
        received += receive_bytes[peer];
    }
    return messages;
}

void place_own_part(std::span<const std::byte> send, std::span<std::byte> receive, int rank) {
    std::byte* const own = receive.data() + static_cast<std::size_t>(rank) * send.size();
    if (!send.empty() && own != send.data()) std::memcpy(own, send.data(), send.size());
}

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0)
        throw RuntimeError(fmt::format("cannot read the host name ({})", std::strerror(errno)));
    return name.data();
}

}  // namespace lockstep::world
