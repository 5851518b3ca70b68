#include "world/agree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>

#include "base/error.hpp"

namespace lockstep::world {
namespace {

struct Outcome {
    std::exception_ptr error;
    int code = 0;
    std::string message;
};

Outcome run(const std::function<void()>& body) {
    try {
        body();
        return {};
    } catch (const Error& e) {
        return {std::current_exception(), static_cast<int>(e.code()), e.what()};
    } catch (const std::exception& e) {
        return {std::current_exception(), static_cast<int>(ExitCode::runtime_failure), e.what()};
    } catch (...) {
        return {std::current_exception(), static_cast<int>(ExitCode::runtime_failure), "an exception of unknown type"};
    }
}

[[noreturn]] void throw_as(ExitCode code, const std::string& message) {
    switch (code) {
        case ExitCode::usage: throw UsageError(message);
        case ExitCode::bad_input: throw InputError(message);
        case ExitCode::threshold_not_met: throw ThresholdError(message);
        case ExitCode::incomplete_data: throw IncompleteError(message);
        case ExitCode::ok:
        case ExitCode::runtime_failure: break;
    }
    throw RuntimeError(message);
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
    return std::as_writable_bytes(std::span{&value, 1});
}

}  // namespace

void agree(World& world, const std::function<void()>& body) {
    const Outcome mine = run(body);
    // Largest where the failing rank is lowest; zero when none failed.
    std::int32_t failing = mine.error ? world.size() - world.rank() : 0;
    try {
        world.all_reduce(bytes_of(failing), Number::i32, Reduce::max);
        if (failing == 0) return;
        const int rank = world.size() - failing;
        std::int32_t code = mine.code;
        world.broadcast(bytes_of(code), rank);
        const std::string message = broadcast_string(world, mine.message, rank);
        if (!mine.error) throw_as(static_cast<ExitCode>(code), fmt::format("rank {} failed: {}", rank, message));
    } catch (...) {
        if (!mine.error) throw;  // else this rank's own error says more than the wire's
    }
    std::rethrow_exception(mine.error);
}

int count_true(World& world, bool flag) {
    std::int32_t count = flag ? 1 : 0;
    world.all_reduce(bytes_of(count), Number::i32, Reduce::sum);
    return count;
}

std::vector<std::string> all_gather_strings(World& world, const std::string& mine) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(ranks);
    world.all_gather(std::as_bytes(std::span{&length, 1}), std::as_writable_bytes(std::span{lengths}));
    const std::size_t longest = *std::max_element(lengths.begin(), lengths.end());
    std::string padded = mine;
    padded.resize(longest);
    std::string all(longest * ranks, '\0');
    world.all_gather(std::as_bytes(std::span{padded}), std::as_writable_bytes(std::span{all}));
    std::vector<std::string> result;
    for (std::size_t rank = 0; rank < ranks; ++rank) result.push_back(all.substr(rank * longest, lengths[rank]));
    return result;
}

std::string broadcast_string(World& world, const std::string& text, int root) {
    std::uint64_t length = text.size();
    world.broadcast(bytes_of(length), root);
    std::string result = world.rank() == root ? text : std::string(length, '\0');
    world.broadcast(std::as_writable_bytes(std::span{result}), root);
    return result;
}

}  // namespace lockstep::world
