// Which operands each kind of op takes: element counts and dtypes of its slots, as written in op.hpp.
#pragma once

#include <string_view>
#include <vector>

#include "step/graph.hpp"

namespace lockstep::step {

enum class SlotType {
    any,
    floating,    ///< fp32, fp16 or bf16
    like_first,  ///< of the dtype of the first input
    fp32,
    int32,
    uint8
};
enum class SlotNeed { required, optional };

struct Slot {
    std::string_view name;
    std::int64_t elements = 0;
    SlotType type = SlotType::like_first;
    SlotNeed need = SlotNeed::required;  ///< optional ones come last
};
struct SlotRules {
    std::vector<Slot> in, out;
};

/// Of any op but a P2PGroup, a HostSync and a StreamWait, which take what they list. Ids must be in range.
SlotRules slot_rules(const StepGraph& graph, const Op& op);

}  // namespace lockstep::step
