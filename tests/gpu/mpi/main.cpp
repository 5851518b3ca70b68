// Communication among GPUs under mpirun, each rank a process with a device of its own. Every rank runs the same list
// and ends with the same status.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "gpu/cuda_check.hpp"
#include "gpu/nccl_cases.hpp"
#include "world/agree.hpp"

int main(int argc, char** argv) {
    using namespace lockstep;
    int failed = 0;
    try {
        world::MpiSession mpi(argc, argv);
        const auto world = mpi.world();
        gpu::check_cuda(cudaSetDevice(world->local_rank()), "cudaSetDevice");
        for (const gpu::testing::NcclCase& one : gpu::testing::nccl_cases()) {
            try {
                world::agree(*world, [&] { one.run(*world); });
                if (world->rank() == 0) fmt::print("ok      {}\n", one.name);
            } catch (const std::exception& failure) {
                ++failed;
                fmt::print("FAILED  {} on rank {}: {}\n", one.name, world->rank(), failure.what());
            }
        }
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        return 1;
    }
    return failed == 0 ? 0 : 1;
}
