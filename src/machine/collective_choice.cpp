#include "machine/collective_choice.hpp"

#include "base/error.hpp"

namespace lockstep::machine {

std::string_view to_string(CollectiveAlgorithm algorithm) {
    switch (algorithm) {
        case CollectiveAlgorithm::ring: return "ring";
        case CollectiveAlgorithm::tree: return "tree";
        case CollectiveAlgorithm::nvls: return "nvls";
    }
    throw LogicError("unknown algorithm of a collective");
}

std::string_view to_string(CollectiveProtocol protocol) {
    switch (protocol) {
        case CollectiveProtocol::ll: return "ll";
        case CollectiveProtocol::ll128: return "ll128";
        case CollectiveProtocol::simple: return "simple";
    }
    throw LogicError("unknown protocol of a collective");
}

}  // namespace lockstep::machine
