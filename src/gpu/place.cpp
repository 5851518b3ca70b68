#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "gpu/place.cuh"

namespace lockstep::gpu {

DeviceRuns::DeviceRuns(const std::vector<step::IndexRun>& runs) : count_(static_cast<int>(runs.size())) {
    if (runs.empty() || runs.size() > most)
        throw LogicError(fmt::format("a dimension in {} runs of indices; GPU kernels know 1 or {}", runs.size(), most));
    std::copy(runs.begin(), runs.end(), runs_);
}

DeviceRuns DeviceRuns::whole(std::int64_t extent) { return DeviceRuns({{0, 0, extent}}); }

IndexBlock block_of(const step::Place& place, std::size_t dimension, const char* what) {
    if (dimension >= place.runs.size() || place.runs[dimension].size() != 1)
        throw LogicError(fmt::format("{} of shape {} must be one block along dimension {}", what,
                                     to_string(place.shape), dimension));
    return {place.runs[dimension][0].global, place.shape[dimension]};
}

DeviceRuns positions_of_rows(const step::Place& place, std::int64_t rows, std::int64_t batch, std::int64_t positions) {
    for (const std::int64_t p : step::positions_of_rows(place, rows, batch))
        if (p >= positions) throw LogicError(fmt::format("position {} in a table of {} positions", p, positions));
    return DeviceRuns(place.runs[0]);
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
        for (step::IndexRun& run : runs) {
            run = {run.local * inner, run.global * inner, run.count * inner};
            if (count_ == 0) stretch_ = std::gcd(stretch_, run.count);  // the first run begins at 0
        }
        local_[count_] = Divider(local * inner);
        global_[count_] = global * inner;
        runs_[count_++] = DeviceRuns(runs);
        inner = 1;
    }
    if (count_ > 0) return;
    global_[0] = 1;
    runs_[count_++] = DeviceRuns::whole(1);
}

}  // namespace lockstep::gpu
