#include "step/life.hpp"

namespace lockstep::step {

bool overlap(const Life& a, const Life& b) {
    auto x = a.intervals.begin();
    auto y = b.intervals.begin();
    while (x != a.intervals.end() && y != b.intervals.end()) {
        if (x->begin <= y->end && y->begin <= x->end) return true;
        if (x->end < y->end)
            ++x;
        else
            ++y;
    }
    return false;
}

std::vector<Life> lives_of_storages(const StepGraph& graph, const Lives& lives) {
    std::vector<Life> of(graph.tensors.size());
    for (const CopyLife& copy : lives.copies) of[copy.tensor.index()].intervals.push_back({copy.begin, copy.end});
    for (Life& life : of) join(life.intervals);
    return of;
}

}  // namespace lockstep::step
