// The real executor that a test program is built for: the same tests run on CPUs and, with the test double, on GPUs.
#pragma once

#include <memory>

#include "plan/framework.hpp"
#include "step/executor.hpp"
#include "world/world.hpp"

namespace lockstep::backend {

/// One of cpu.cpp and gpu.cpp is in the program.
std::unique_ptr<step::Executor> make_executor(world::World& world);
/// What such an executor wants of convolutions' weights.
plan::MemoryFormat memory_format();
/// The test double multiplies in plain loops: a vocabulary of 50 thousand words would take it minutes.
bool is_fast();

}  // namespace lockstep::backend
