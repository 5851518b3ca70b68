#include "cpu/tensor_memory.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/element_order.hpp"
#include "cpu/first_values.hpp"
#include "cpu/global_place.hpp"

namespace lockstep::cpu {
namespace {

/// Around a ring of context parallelism: the positions of the keys that have come to this rank by this step. They are
/// those of the queries of the rank they come from.
void place_ring_keys(const step::StepGraph& graph, int rank, const step::OpInstance& instance, Operands& operands) {
    const auto* compute = std::get_if<step::Compute>(&instance.op->kind);
    const auto* attention = compute != nullptr ? std::get_if<step::Attention>(compute) : nullptr;
    if (attention == nullptr || attention->part != step::Attention::Part::ring) return;
    const std::size_t qkv = attention->pass == step::Pass::forward ? 0 : 1;
    if (attention->ring_size != graph.mesh.cp || operands.in.size() < qkv + 2)
        throw LogicError(fmt::format("op {} goes round a ring of {} ranks, but cp has {}", instance.op->name,
                                     attention->ring_size, graph.mesh.cp));
    plan::Coordinates from = graph.mesh.coordinates(rank);
    from.cp = (from.cp - attention->ring_step % graph.mesh.cp + graph.mesh.cp) % graph.mesh.cp;
    const Operand keys = place_operand(graph.tensor(instance.op->in[qkv]), graph.mesh, graph.mesh.rank(from));
    operands.in[qkv + 1].runs.at(0) = keys.runs.at(0);
    operands.in[qkv + 1].global.extents.at(0) = keys.global[0];
}

}  // namespace

TensorMemory::TensorMemory(const step::StepGraph& graph, int rank)
    : graph_(graph),
      rank_(rank),
      plan_(step::plan_memory(graph, graph.rank_class(rank))),
      orders_(choose_orders(graph)),
      arena_(plan_.arena_bytes, "the tensors of this rank") {}

const step::Tensor& TensorMemory::root(step::TensorId id) const {
    const step::Tensor& tensor = graph_.tensor(id);
    return tensor.view ? graph_.tensor(tensor.view->of) : tensor;
}

std::byte* TensorMemory::address(step::TensorId id, std::int32_t micro_batch) const {
    const step::Tensor& tensor = graph_.tensor(id);
    std::int64_t offset = plan_.offset[id.index()];
    if (offset < 0) throw LogicError(fmt::format("tensor {} has no memory on this rank", tensor.name));
    if (tensor.view && tensor.view->ring) {
        const step::RingPart& ring = *tensor.view->ring;
        const std::int64_t parts = graph_.mesh.extent(ring.axis);
        const std::int64_t part = graph_.mesh.coordinates(rank_)[ring.axis] + ring.offset % parts + parts;
        offset += part % parts * static_cast<std::int64_t>(tensor.bytes().value);
    }
    const step::Tensor& storage = root(id);
    return arena_.data() + offset + storage.slot_of(micro_batch) * storage.slot_stride();
}

Operand TensorMemory::operand(step::TensorId id, std::int32_t micro_batch) const {
    Operand o = place_operand(graph_.tensor(id), graph_.mesh, rank_);
    o.data = address(id, micro_batch);
    o.order = orders_[id.index()];
    o.tensor = id.value;
    return o;
}

Operands TensorMemory::operands(const step::OpInstance& instance) const {
    Operands operands;
    step::for_each_operand(instance, [&](step::TensorId id, std::int32_t micro_batch, const step::Write* write) {
        if (write == nullptr)
            operands.in.push_back(operand(id, micro_batch));
        else
            operands.out.push_back({operand(id, micro_batch), write->access});
    });
    place_ring_keys(graph_, rank_, instance, operands);
    return operands;
}

bool TensorMemory::moves_with_micro_batch(const step::Op& op) const {
    bool moves = false;
    step::for_each_operand(step::OpInstance{&op}, [&](step::TensorId id, std::int32_t, const step::Write*) {
        moves = moves || root(id).slots > 1;
    });
    return moves;
}

void TensorMemory::initialise() const {
    using Kind = step::Initial::Kind;
    arena_.touch();
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
        const step::TensorId id{static_cast<std::int32_t>(i)};
        const step::Tensor& tensor = graph_.tensors[i];
        const bool is_kept = plan_.offset[i] >= 0 && root(id).lifetime == step::Lifetime::carried;
        if (tensor.initial.kind == Kind::none || !is_kept) continue;
        for (std::int32_t slot = 0; slot < root(id).slots; ++slot) {
            if (tensor.initial.kind == Kind::part_of)
                write_part_of_views(graph_, rank_, id, operand(id, slot));
            else
                write_first_values(tensor.initial, graph_.seed, slot, operand(id, slot));
        }
    }
}

std::vector<float> TensorMemory::read(step::TensorId id) const {
    const step::Tensor& tensor = graph_.tensor(id);
    if (plan_.offset[id.index()] < 0 || orders_[id.index()] == Order::packed)
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
