#include <fmt/format.h>

#include "base/error.hpp"
#include "gpu/place.cuh"

namespace lockstep::gpu {

DeviceRuns::DeviceRuns(const std::vector<step::IndexRun>& runs) : count_(static_cast<int>(runs.size())) {
    if (runs.empty() || runs.size() > most)
        throw LogicError(fmt::format("a dimension in {} runs of indices; GPU kernels know 1 or {}", runs.size(), most));
    std::copy(runs.begin(), runs.end(), runs_);
}

DevicePlace::DevicePlace(const step::Place& part) {
    if (part.global.rank() != part.shape.rank() || part.runs.size() != part.shape.rank() ||
        part.shape.rank() > most_dimensions)
        throw LogicError(fmt::format("a part of shape {} has no place in a whole tensor of at most {} dimensions",
                                     to_string(part.shape), most_dimensions));
    elements_ = part.global.elements();
    std::int64_t inner = 1;  // of the whole dimensions that are joined with the next outer one
    for (std::size_t d = part.shape.rank(); d-- > 0;) {
        const std::int64_t local = part.shape[d], global = part.global[d];
        if (d > 0 && local == global) {
            inner *= global;
            continue;
        }
        std::vector<step::IndexRun> runs = part.runs[d];
        for (step::IndexRun& run : runs) run = {run.local * inner, run.global * inner, run.count * inner};
        local_[count_] = Divider(local * inner);
        global_[count_] = global * inner;
        runs_[count_++] = DeviceRuns(runs);
        inner = 1;
    }
    if (count_ > 0) return;
    global_[0] = 1;
    runs_[count_++] = DeviceRuns({{0, 0, 1}});
}

}  // namespace lockstep::gpu
