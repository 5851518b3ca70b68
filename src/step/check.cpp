#include "step/check.hpp"

#include "step/check_parts.hpp"

namespace lockstep::step {

void check(const StepGraph& graph) {
    check_structure(graph);
    check_slots(graph);
    check_reads(graph);
    check_progress(graph);
}

}  // namespace lockstep::step
