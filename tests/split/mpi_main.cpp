// Split plans under mpirun with synchronous sends: those for as many ranks as there are, one after the other. Every
// rank runs the same list and ends with the same status.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "split/split_cases.hpp"

int main(int argc, char** argv) {
    using namespace lockstep;
    int failed = 0, run = 0;
    try {
        world::MpiSession mpi(argc, argv);
        const auto world = mpi.world(world::MpiSession::default_largest_call, world::SendMode::synchronous);
        for (const split::Case& one : split::cases()) {
            if (one.ranks != world->size()) continue;
            ++run;
            try {
                const auto report = split::run_case(*world, one);
                if (world->rank() == 0)
                    fmt::print("ok      {:<36} largest relative L2 {:.1e} ({})\n", one.name, report.worst_relative_l2,
                               report.worst_gradient);
            } catch (const std::exception& failure) {
                ++failed;
                if (world->rank() == 0) fmt::print("FAILED  {:<36} {}\n", one.name, failure.what());
            }
        }
        if (world->rank() == 0) fmt::print("{} plans, {} failed\n", run, failed);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        return 1;
    }
    return failed == 0 && run > 0 ? 0 : 1;
}
