// The algorithms and protocols NCCL chooses from for a collective.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep::machine {

/// nvls: the switches of a node add up and copy (NVLink SHARP); between nodes a tree joins them.
enum class CollectiveAlgorithm { ring, tree, nvls };

/// How a receiver knows that data are there: ll writes 4 bytes of flag beside 4 of data, ll128 8 beside 120, simple
/// synchronises whole chunks.
enum class CollectiveProtocol { ll, ll128, simple };

/// As NCCL_ALGO and NCCL_PROTO: nothing is the fastest.
struct ForcedCollectives {
    std::optional<CollectiveAlgorithm> algorithm;
    std::optional<CollectiveProtocol> protocol;
    bool operator==(const ForcedCollectives&) const = default;
};

std::string_view to_string(CollectiveAlgorithm algorithm);  ///< "ring", "tree", "nvls"
std::string_view to_string(CollectiveProtocol protocol);    ///< "ll", "ll128", "simple"

}  // namespace lockstep::machine
