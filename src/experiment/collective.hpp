// An experiment that is one collective in place of a model: what nccl-tests measure.
#pragma once

#include <optional>
#include <string>

#include "base/collective.hpp"
#include "base/dtype.hpp"
#include "base/units.hpp"
#include "config/document.hpp"

namespace lockstep::experiment {

struct CollectiveRequest {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Bytes bytes;  ///< of the whole buffer, as nccl-tests count: what a rank reduces or broadcasts, or receives from all
                  ///< ranks together, or sends to all, or scatters
    DType dtype = DType::fp32;

    std::string title() const;  ///< "all_reduce of 1 GiB"
};

/// {kind, bytes, dtype}; none when absent. Keys of the experiment that say how a model is trained are refused beside
/// it, and so is a rank on its own.
std::optional<CollectiveRequest> read_collective(config::Object& experiment);

}  // namespace lockstep::experiment
