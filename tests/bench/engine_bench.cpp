// How fast the event engine is: best of five runs, CPU time of this thread.
#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/figure.hpp"
#include "sim/event_queue.hpp"
#include "sim/transfers.hpp"

namespace {

using namespace lockstep;

constexpr double event_limit = 3e6;
constexpr double rate_change_limit = 0.3e6;

double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Best of five: `run` returns how many things it did.
template <class Run>
double best_rate(Run run) {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
        const double begin = cpu_seconds();
        const double done = static_cast<double>(run());
        best = std::max(best, done / (cpu_seconds() - begin));
    }
    return best;
}

struct Link {
    std::uint32_t chain;
    std::uint32_t step;
};

/// `chains` chains of events; each event pushes the next of its chain, so that none can be prepared ahead.
std::int64_t run_chains(std::uint32_t chains, std::int64_t events) {
    sim::EventQueue<Link> queue;
    std::uint64_t state = 1;
    for (std::uint32_t c = 0; c < chains; ++c) queue.push(Picoseconds{c}, {c, 0});
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < events; ++i) {
        const auto event = queue.pop();
        last = event.time.count;
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const auto delay = static_cast<std::int64_t>(state >> 44) + 1;
        queue.push(event.time + Picoseconds{delay}, {event.payload.chain, event.payload.step + 1});
    }
    return last > 0 ? events : 0;
}

struct Pending {
    sim::ActivityId id;
    std::uint32_t version;
};

/// `flows` transfers at a time over a two-stage tree of links (8 leaves of 100, one spine of 300): each that ends is
/// followed by another, so that every end and every start changes the rates of the others. Returns rate changes.
std::int64_t run_shared(int flows, std::int64_t ends) {
    sim::Transfers transfers;
    std::array<sim::SharedLinkId, 8> leaves;
    for (auto& leaf : leaves) leaf = transfers.add_link(100_GBps);
    const sim::SharedLinkId spine = transfers.add_link(300_GBps);
    sim::EventQueue<Pending> queue;
    std::uint64_t state = 7;
    auto post = [&] {
        for (const sim::Due& due : transfers.posts()) queue.push(due.time, {due.id, due.version});
        transfers.clear_posts();
    };
    auto start = [&](Picoseconds now) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const std::array uses{sim::LinkUse{leaves[(state >> 40) % 8]}, sim::LinkUse{spine}};
        transfers.start(Bytes{static_cast<double>((state >> 44) + 1000)}, 80_GBps, uses, now);
        post();
    };
    for (int i = 0; i < flows; ++i) start(Picoseconds{0});
    for (std::int64_t done = 0; done < ends;) {
        const auto event = queue.pop();
        const auto outcome = transfers.fire(event.payload.id, event.payload.version, event.time);
        post();
        if (outcome != sim::Transfers::Outcome::done) continue;
        ++done;
        start(event.time);
    }
    return static_cast<std::int64_t>(transfers.rate_changes());
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    for (std::uint32_t chains : {1U, 64U, 4096U})
        bench::register_figure(fmt::format("dependent events, {} pending", chains), [chains]() -> bench::Figure {
            return {"events_per_second", best_rate([&] { return run_chains(chains, 2'000'000); }), event_limit};
        });
    for (int flows : {4, 16, 64})
        bench::register_figure(fmt::format("rate changes, {} flows over 9 shared links", flows),
                               [flows]() -> bench::Figure {
                                   return {"rate_changes_per_second",
                                           best_rate([&] { return run_shared(flows, 20'000); }), rate_change_limit};
                               });
    benchmark::RunSpecifiedBenchmarks();
}
