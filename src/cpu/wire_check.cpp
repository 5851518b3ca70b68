#include "cpu/wire_check.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace lockstep::cpu {
namespace {

/// What rank `r` contributes at `i`: whole numbers below 2^12, so that sums of up to 4096 ranks are exact in fp32.
float pattern(int r, std::size_t i) { return static_cast<float>((i * 31 + static_cast<std::size_t>(r) * 977) % 4093); }

float sum_of_patterns(int ranks, std::size_t i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += pattern(r, i);
    return sum;
}

struct Check {
    world::World& world;
    const std::string& name;

    template <class Expected>
    void compare(const char* what, const std::vector<float>& got, Expected expected) const {
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (got[i] == expected(i)) continue;
            throw RuntimeError(
                fmt::format("{} over communicator {} gave rank {} {} at element {} instead of {} (the wire "
                            "or its library corrupts data); check the network",
                            what, name, world.rank(), got[i], i, expected(i)));
        }
    }
    std::vector<float> mine(std::size_t n) const {
        std::vector<float> values(n);
        for (std::size_t i = 0; i < n; ++i) values[i] = pattern(world.rank(), i);
        return values;
    }
    void all_reduce(std::size_t n) const {
        std::vector<float> data = mine(n);
        world.all_reduce(std::as_writable_bytes(std::span{data}), world::Number::f32, world::Reduce::sum);
        compare("an all-reduce", data, [&](std::size_t i) { return sum_of_patterns(world.size(), i); });
    }
    void all_gather(std::size_t n) const {
        const std::vector<float> send = mine(n);
        std::vector<float> receive(n * static_cast<std::size_t>(world.size()));
        world.all_gather(std::as_bytes(std::span{send}), std::as_writable_bytes(std::span{receive}));
        compare("an all-gather", receive, [&](std::size_t i) { return pattern(static_cast<int>(i / n), i % n); });
    }
    void reduce_scatter(std::size_t n) const {
        const std::vector<float> send = mine(n * static_cast<std::size_t>(world.size()));
        std::vector<float> receive(n);
        world.reduce_scatter(std::as_bytes(std::span{send}), std::as_writable_bytes(std::span{receive}),
                             world::Number::f32, world::Reduce::sum);
        const std::size_t first = n * static_cast<std::size_t>(world.rank());
        compare("a reduce-scatter", receive, [&](std::size_t i) { return sum_of_patterns(world.size(), first + i); });
    }
    void ring(std::size_t n) const {
        const int size = world.size(), next = (world.rank() + 1) % size, before = (world.rank() + size - 1) % size;
        const std::vector<float> send = mine(n);
        std::vector<float> receive(n);
        const world::Send out{std::as_bytes(std::span{send}), next, 1};
        const world::Receive in{std::as_writable_bytes(std::span{receive}), before, 1};
        world.exchange({&out, 1}, {&in, 1});
        compare("a message", receive, [&](std::size_t i) { return pattern(before, i); });
    }
};

}  // namespace

void check_wire(world::World& world, const std::string& name) {
    const Check check{world, name};
    for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 18}) {
        check.all_reduce(n);
        check.all_gather(n);
        check.reduce_scatter(n);
        check.ring(n);
    }
}

}  // namespace lockstep::cpu
