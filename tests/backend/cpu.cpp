#include "backend/backend.hpp"
#include "cpu/cpu_executor.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::backend {

std::unique_ptr<step::Executor> make_executor(world::World& world) {
    return std::make_unique<cpu::CpuExecutor>(
        world, cpu::CpuOptions{.threads = 1, .epoch = world::steady_now(), .cpu_model = "test"});
}
plan::MemoryFormat memory_format() { return plan::MemoryFormat::packed; }
bool is_fast() {
#ifdef __SANITIZE_ADDRESS__
    return false;
#else
    return true;
#endif
}

}  // namespace lockstep::backend
