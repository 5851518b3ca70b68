#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"
#include "step/slot_rules.hpp"

namespace lockstep::step {

namespace {

bool is_floating(DType type) { return type == DType::fp32 || type == DType::fp16 || type == DType::bf16; }

bool fits(SlotType wanted, DType type, DType first) {
    switch (wanted) {
        case SlotType::any: return true;
        case SlotType::floating: return is_floating(type);
        case SlotType::like_first: return type == first;
        case SlotType::fp32: return type == DType::fp32;
        case SlotType::int32: return type == DType::int32;
        case SlotType::uint8: return type == DType::uint8;
    }
    return false;
}

std::string_view name_of(SlotType type, DType first) {
    switch (type) {
        case SlotType::any: return "any dtype";
        case SlotType::floating: return "fp32, fp16 or bf16";
        case SlotType::like_first: return to_string(first);
        case SlotType::fp32: return "fp32";
        case SlotType::int32: return "int32";
        case SlotType::uint8: return "uint8";
    }
    return "?";
}

void check_side(const StepGraph& graph, const Op& op, const std::vector<Slot>& rules,
                const std::vector<TensorId>& given, const char* side) {
    const auto least = static_cast<std::size_t>(
        std::count_if(rules.begin(), rules.end(), [](const Slot& slot) { return slot.need == SlotNeed::required; }));
    if (given.size() < least || given.size() > rules.size())
        throw InputError(fmt::format("op {} ({}) has {} {} where {} to {} belong; give it those op.hpp lists", op.name,
                                     kind_name(op), given.size(), side, least, rules.size()));
    const DType first = op.in.empty() ? DType::fp32 : graph.tensor(op.in[0]).dtype;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Tensor& tensor = graph.tensor(given[i]);
        if (tensor.elements() != rules[i].elements)
            throw InputError(fmt::format("op {} ({}) takes {} elements as {} but {} {} has {}; make them equal",
                                         op.name, kind_name(op), rules[i].elements, rules[i].name, tensor.name,
                                         to_string(tensor.shape), tensor.elements()));
        if (!fits(rules[i].type, tensor.dtype, first))
            throw InputError(fmt::format("op {} ({}) takes {} as {} but {} is {}; cast it", op.name, kind_name(op),
                                         name_of(rules[i].type, first), rules[i].name, tensor.name,
                                         to_string(tensor.dtype)));
    }
}

std::vector<TensorId> written(const Op& op) {
    std::vector<TensorId> tensors;
    for (const Write& write : op.out) tensors.push_back(write.tensor);
    return tensors;
}

std::vector<TensorId> tensors_of(const std::vector<Message>& messages) {
    std::vector<TensorId> tensors;
    for (const Message& message : messages) tensors.push_back(message.tensor);
    return tensors;
}

void check_op(const StepGraph& graph, const Op& op) {
    if (std::holds_alternative<HostSync>(op.kind) || std::holds_alternative<StreamWait>(op.kind)) {
        if (op.in.empty() || !op.out.empty())
            throw InputError(fmt::format("op {} ({}) waits for its inputs and writes nothing; give it those", op.name,
                                         kind_name(op)));
        return;
    }
    if (const auto* group = std::get_if<P2PGroup>(&op.kind)) {
        if (tensors_of(group->sends) != op.in || tensors_of(group->receives) != written(op))
            throw InputError(
                fmt::format("op {} (p2p) must list the tensors of its sends as inputs and of its receives as "
                            "outputs, in order",
                            op.name));
        return;
    }
    const SlotRules rules = slot_rules(graph, op);
    check_side(graph, op, rules.in, op.in, "inputs");
    check_side(graph, op, rules.out, written(op), "outputs");
    const auto* collective = std::get_if<Collective>(&op.kind);
    if (collective && graph.tensor(op.in[0]).dtype != collective->dtype)
        throw InputError(fmt::format("op {} ({}) sends {} but {} is {}; make them equal", op.name, kind_name(op),
                                     to_string(collective->dtype), graph.tensor(op.in[0]).name,
                                     to_string(graph.tensor(op.in[0]).dtype)));
}

}  // namespace

void check_slots(const StepGraph& graph) {
    for (const Block& block : graph.blocks)
        for (const Op& op : block.ops) check_op(graph, op);
}

}  // namespace lockstep::step
