#include "world/clock_sync.hpp"

#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "base/error.hpp"
#include "world/agree.hpp"

namespace lockstep::world {
namespace {

using Clock = std::function<Nanoseconds()>;

Nanoseconds count(std::chrono::nanoseconds t) { return {t.count()}; }

void answer(World& world, int asker, int round_trips, const Clock& clock) {
    const Receive question{{}, asker, 0};
    for (int i = 0; i < round_trips; ++i) {
        world.exchange({}, {&question, 1});
        const Nanoseconds now = clock();
        const Send reply{std::as_bytes(std::span{&now, 1}), asker, 0};
        world.exchange({&reply, 1}, {});
    }
}

ClockOffset ask(World& world, int round_trips, const Clock& clock) {
    ClockOffset best{{0}, {-1}};
    const Send question{{}, 0, 0};
    for (int i = 0; i < round_trips; ++i) {
        Nanoseconds theirs;
        const Receive reply{std::as_writable_bytes(std::span{&theirs, 1}), 0, 0};
        const Nanoseconds before = clock();
        world.exchange({&question, 1}, {&reply, 1});
        const Nanoseconds after = clock();
        const std::int64_t half = (after - before).count / 2;
        if (best.uncertainty.count < 0 || half < best.uncertainty.count)
            best = {{theirs.count - before.count - half}, {half}};
    }
    best.uncertainty.count += 1;  // halves are rounded down
    return best;
}

// Ranks with equal text run under one kernel, and so on one steady clock: host names may repeat (containers), boot ids
// don't.
std::string clock_identity(const World& world) {
    std::string boot_id;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
    return boot_id.empty() ? world.host() : boot_id;
}

}  // namespace

Nanoseconds steady_now() { return count(std::chrono::steady_clock::now().time_since_epoch()); }
Nanoseconds utc_now() { return count(std::chrono::system_clock::now().time_since_epoch()); }

ClockOffset estimate_clock_offset(World& world, int round_trips, const Clock& clock) {
    if (round_trips < 1) throw LogicError(fmt::format("a clock offset from {} round trips", round_trips));
    const auto apart = world.split(0, world.rank());  // no message meets the caller's
    ClockOffset mine{};
    for (int rank = 1; rank < world.size(); ++rank) {
        if (world.rank() == 0) answer(*apart, rank, round_trips, clock);
        if (world.rank() == rank) mine = ask(*apart, round_trips, clock);
    }
    return mine;
}

ClockOffset measure_clock_offset(World& world, int round_trips) {
    const auto identities = all_gather_strings(world, clock_identity(world));
    const bool is_shared = identities[world.rank()] == identities[0];
    if (count_true(world, is_shared) == world.size()) return {};
    const ClockOffset by_messages = estimate_clock_offset(world, round_trips, steady_now);
    return is_shared ? ClockOffset{} : by_messages;
}

}  // namespace lockstep::world
