// A small program under mpirun whose ranks end in the ways that commands do; the tests look at its output and exit
// status.
//
//   session_program agree   the last rank fails inside agree(): every rank tidies up and leaves with the same code
//   session_program alone   the last rank throws without agreement while the others wait: nothing may hang
//   session_program cut     every rank gets a message that is too long: MPI's own words reach the user (nothing may
//   follow in the same
//                           program, since MPI promises nothing after an error)
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "world/agree.hpp"

namespace {

using namespace lockstep;

int agree_and_leave(world::World& w) {
    try {
        world::agree(w, [&] {
            if (w.rank() == w.size() - 1) throw InputError("the last rank can't read its input");
        });
    } catch (const Error& error) {
        // The failing rank is first; the others still have something to write.
        if (w.rank() != w.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
        fmt::print("rank {} closes its file: {}\n", w.rank(), error.what());
        std::fflush(stdout);
        return static_cast<int>(error.code());
    }
    return 0;
}

void send_too_much(world::World& w) {
    const std::array<std::byte, 8> longer{};
    std::array<std::byte, 4> room{};
    const world::Send out{longer, (w.rank() + 1) % w.size(), 0};
    const world::Receive in{room, (w.rank() + w.size() - 1) % w.size(), 0};
    w.exchange({&out, 1}, {&in, 1});
}

int run(int argc, char** argv) {
    world::MpiSession session(argc, argv);
    const auto w = session.world();
    if (std::string(argv[1]) == "agree") return agree_and_leave(*w);
    if (std::string(argv[1]) == "cut") send_too_much(*w);
    if (w->rank() == w->size() - 1) throw RuntimeError("the last rank fails alone");
    w->barrier();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    try {
        return run(argc, argv);
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return static_cast<int>(error.code());
    }
}
