#include "cpu/tensor_memory.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/element_order.hpp"
#include "cpu/first_values.hpp"
#include "step/global_place.hpp"
#include "step/storage.hpp"

namespace lockstep::cpu {
TensorMemory::TensorMemory(const step::StepGraph& graph, int rank)
    : graph_(graph),
      rank_(rank),
      plan_(step::plan_memory(graph, graph.rank_class(rank))),
      orders_(choose_orders(graph)),
      arena_(plan_.arena_bytes, "the tensors of this rank") {}

std::byte* TensorMemory::address(step::TensorId id, std::int32_t micro_batch) const {
    return arena_.data() + step::byte_offset(graph_, plan_, rank_, id, micro_batch);
}

Operand TensorMemory::operand(step::TensorId id, std::int32_t micro_batch) const {
    return operand_at(id, step::byte_offset(graph_, plan_, rank_, id, micro_batch));
}

Operand TensorMemory::operand_at(step::TensorId id, std::int64_t offset) const {
    Operand o;
    static_cast<step::Place&>(o) = step::place_of(graph_.tensor(id), graph_.mesh, rank_);
    o.dtype = graph_.tensor(id).dtype;
    o.data = arena_.data() + offset;
    o.order = orders_[id.index()];
    o.tensor = id.value;
    return o;
}

Operands TensorMemory::operands(const step::OpInstance& instance) const {
    Operands operands;
    step::for_each_operand(instance, [&](step::TensorId id, std::int32_t micro_batch, const step::Write* write) {
        const std::int64_t offset = step::byte_offset(graph_, plan_, rank_, instance, id, micro_batch);
        if (write == nullptr)
            operands.in.push_back(operand_at(id, offset));
        else
            operands.out.push_back({operand_at(id, offset), write->access});
    });
    const auto* compute = std::get_if<step::Compute>(&instance.op->kind);
    const auto* attention = compute != nullptr ? std::get_if<step::Attention>(compute) : nullptr;
    if (attention != nullptr && attention->part == step::Attention::Part::ring)
        step::place_ring_keys(graph_, rank_, instance, *attention,
                              operands.in.at(attention->pass == step::Pass::forward ? 1 : 2));
    return operands;
}

void TensorMemory::initialise() const {
    using Kind = step::Initial::Kind;
    arena_.touch();
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
        const step::TensorId id{static_cast<std::int32_t>(i)};
        const step::Tensor& tensor = graph_.tensors[i];
        const bool is_kept = plan_.holds(id) && step::storage_of(graph_, id).lifetime == step::Lifetime::carried;
        if (tensor.initial.kind == Kind::none || !is_kept) continue;
        for (std::int32_t slot = 0; slot < step::storage_of(graph_, id).slots; ++slot) {
            if (tensor.initial.kind == Kind::part_of)
                write_part_of_views(graph_, rank_, id, operand(id, slot));
            else
                write_first_values(tensor.initial, graph_.seed, slot, operand(id, slot));
        }
    }
}

std::vector<float> TensorMemory::read(step::TensorId id) const {
    const step::Tensor& tensor = graph_.tensor(id);
    if (!plan_.holds(id) || orders_[id.index()] == Order::packed)
        throw RuntimeError(fmt::format("tensor {} can't be read (this rank keeps no plain copy of it)", tensor.name));
    const Operand from = operand(id, graph_.micro_batches - 1);
    std::vector<float> values(static_cast<std::size_t>(from.elements()));
    for (std::int64_t i = 0; i < from.elements(); ++i) {
        const std::int64_t at = stored_at(from.order, from.shape, i);
        if (from.dtype == DType::int32)
            values[i] = static_cast<float>(pointer<std::int32_t>(from)[at]);
        else if (from.dtype == DType::uint8)
            values[i] = pointer<std::uint8_t>(from)[at];
        else
            with_type(from.dtype, [&](auto type) { values[i] = load(pointer<decltype(type)>(from)[at]); });
    }
    return values;
}

}  // namespace lockstep::cpu
