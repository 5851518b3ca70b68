// What callers hand to a World, checked and taken apart in the same way for every implementation: a wrong length is a
// bug of the caller, found here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace lockstep::world {

/// Throw LogicError when the argument does not fit the contract of World.
void check_rank(const World& world, int rank, const char* role);
void check_numbers(std::size_t bytes, Number type);
void check_parts(const World& world, std::size_t whole, std::size_t part, const char* operation);
void check_all_to_all(const World& world, std::size_t send, std::size_t receive);
void check_colour(int colour);
void check_messages(const World& world, std::span<const Send> sends, std::span<const Receive> receives);

/// An all-to-all of unequal parts as messages, one to and one from each rank. Throws LogicError when the lengths don't
/// fit the buffers.
struct PartMessages {
    std::vector<Send> sends;
    std::vector<Receive> receives;
};
PartMessages messages_of_parts(const World& world, std::span<const std::byte> send,
                               std::span<const std::size_t> send_bytes, std::span<std::byte> receive,
                               std::span<const std::size_t> receive_bytes, int tag);

/// Copies `send` to part `rank` of `receive`, unless it is that part already.
void place_own_part(std::span<const std::byte> send, std::span<std::byte> receive, int rank);

/// Name of this host as the operating system knows it. Throws RuntimeError.
std::string host_name();

}  // namespace lockstep::world
