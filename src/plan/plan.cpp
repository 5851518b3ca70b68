#include "plan/plan.hpp"

#include "base/error.hpp"

namespace lockstep::plan {

std::string_view to_string(Optimizer optimizer) {
    switch (optimizer) {
        case Optimizer::sgd_momentum: return "sgd-momentum";
        case Optimizer::adam: return "adam";
    }
    throw LogicError("an optimizer without a name");
}

std::string_view to_string(Schedule schedule) {
    switch (schedule) {
        case Schedule::gpipe: return "gpipe";
        case Schedule::one_forward_one_backward: return "1f1b";
        case Schedule::interleaved: return "interleaved";
    }
    throw LogicError("a schedule without a name");
}

std::string_view to_string(Recompute recompute) {
    switch (recompute) {
        case Recompute::none: return "none";
        case Recompute::selective: return "selective";
        case Recompute::full: return "full";
    }
    throw LogicError("a way to recompute without a name");
}

std::string_view to_string(ContextAlgorithm algorithm) {
    switch (algorithm) {
        case ContextAlgorithm::ring: return "ring";
        case ContextAlgorithm::all_to_all: return "all-to-all";
    }
    throw LogicError("a context algorithm without a name");
}

}  // namespace lockstep::plan
