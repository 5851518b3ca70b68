// What every executor must keep to, whatever carries the ops out.
#pragma once

#include "step/executor.hpp"

namespace lockstep::contract {

/// Runs `steps` steps on a prepared executor, two in flight, as the step driver does.
std::vector<step::StepRecord> run_steps(step::Executor& executor, int steps);

/// Expects, for the records of one rank over successive steps: every op of the class once, in issue order, with its
/// micro-batch and stream; ready <= start <= end; ops of a stream one after the other; an op after all that it depends
/// on, also from the step before; begin and end around all spans.
void expect_contract(const step::StepGraph& graph, const step::RankClass& rank_class,
                     const std::vector<step::StepRecord>& records);

}  // namespace lockstep::contract
