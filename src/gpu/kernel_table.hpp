// The prepared kernels of one step of a rank, and the workspaces they share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/handles.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"
#include "gpu/tensor_memory.hpp"
#include "step/schedule.hpp"

namespace lockstep::gpu {

/// One kernel per op that computes or copies; ops whose operands move with the micro-batch have one for each. Kernels
/// of one stream run one after another and share a workspace.
class KernelTable {
public:
    KernelTable(const step::Schedule& schedule, const TensorMemory& memory);

    /// Kernel of an op by its position in the schedule; null for communication.
    Kernel* at(std::int32_t position) const { return by_position_[static_cast<std::size_t>(position)]; }
    std::int64_t workspace_bytes() const { return workspace_bytes_; }
    /// What libraries chose, by op name.
    const std::map<std::string, std::string>& algorithms() const { return algorithms_; }

private:
    BlasLt blas_;
    Dnn dnn_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
    std::vector<Kernel*> by_position_;
    std::vector<DeviceMemory> workspaces_;  // by lane
    std::int64_t workspace_bytes_ = 0;
    std::map<std::string, std::string> algorithms_;
};

}  // namespace lockstep::gpu
