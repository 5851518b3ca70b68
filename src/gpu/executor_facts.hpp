// What a rank's executor was, beyond versions: communicators, chosen algorithms, what recording costs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/nccl_communicator.hpp"
#include "gpu/sampling.hpp"

namespace lockstep::gpu {

/// "layer*.qkv.forward (96 ops): ALGORITHM", one line per pattern of op names that differ in numbers only, when all
/// of its ops have one algorithm; else one line per op. `algorithms` by op name.
std::string algorithms_text(const std::map<std::string, std::string>& algorithms);

/// nccl_version, nccl_algorithm, and "communicator NAME": "2 ranks: rank 0 (host n1, GPU 0), rank 1 (host n1, GPU 1)"
/// of each that is not null, 64 members at most by name.
std::map<std::string, std::string> nccl_facts(const std::vector<std::unique_ptr<NcclCommunicator>>& communicators);

/// spans and span_cost: in which steps the times of ops are taken, and at what cost.
std::map<std::string, std::string> sampling_facts(const Sampling& sampling, int events_per_step);

}  // namespace lockstep::gpu
