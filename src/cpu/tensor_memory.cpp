#include "cpu/tensor_memory.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/element_order.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

/// Row-major index in the global tensor of an element of this rank's part.
class GlobalIndex {
public:
    GlobalIndex(const step::Tensor& tensor, const plan::Mesh& mesh, int rank)
        : local_(tensor.shape),
          global_(step::global_shape(tensor, mesh)),
          offset_(step::shard_offset(tensor, mesh, rank)) {}
    std::int64_t operator()(std::int64_t local) const {
        std::int64_t index = 0, stride = 1;
        for (std::size_t d = local_.rank(); d-- > 0;) {
            index += (local % local_[d] + offset_[d]) * stride;
            local /= local_[d];
            stride *= global_[d];
        }
        return index;
    }
    std::int64_t elements() const { return global_.elements(); }

private:
    Shape local_, global_;
    std::vector<std::int64_t> offset_;
};

struct FirstValue {
    step::Initial initial;
    std::uint64_t seed;
    float operator()(std::int64_t counter) const {
        using Kind = step::Initial::Kind;
        switch (initial.kind) {
            case Kind::one: return 1;
            case Kind::value: return static_cast<float>(initial.scale);
            case Kind::normal:
                return static_cast<float>(initial.scale) *
                       random_normal(seed, initial.stream, static_cast<std::uint64_t>(counter));
            default: return 0;
        }
    }
    std::int32_t integer(std::int64_t counter) const {
        const std::uint64_t bits = random_bits(seed, initial.stream, static_cast<std::uint64_t>(counter));
        return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(std::max<std::int64_t>(initial.range, 1)));
    }
};

template <class T, class Value>
void fill(const Operand& o, const GlobalIndex& global, std::int64_t slot, const Value& value) {
    const std::int64_t before = slot * global.elements();
    T* const data = pointer<T>(o);
    const std::int64_t n = o.elements();
#pragma omp parallel for if (n > element_grain)
    for (std::int64_t i = 0; i < n; ++i) data[stored_at(o.order, o.shape, i)] = value(before + global(i));
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
    const std::int64_t offset = plan_.offset[id.index()];
    if (offset < 0) throw LogicError(fmt::format("tensor {} has no memory on this rank", graph_.tensor(id).name));
    const step::Tensor& storage = root(id);
    return arena_.data() + offset + storage.slot_of(micro_batch) * storage.slot_stride();
}

Operand TensorMemory::operand(step::TensorId id, std::int32_t micro_batch) const {
    const step::Tensor& tensor = graph_.tensor(id);
    const GlobalIndex global(tensor, graph_.mesh, rank_);
    Operand o;
    o.data = address(id, micro_batch);
    o.dtype = tensor.dtype;
    o.shape = tensor.shape;
    o.order = orders_[id.index()];
    o.tensor = id.value;
    o.first_global = global(0);
    o.per_micro_batch = global.elements();
    return o;
}

Operands TensorMemory::operands(const step::OpInstance& op) const {
    Operands operands;
    for (const step::TensorId id : op.op->in) operands.in.push_back(operand(id, op.micro_batch));
    for (const step::Write& write : op.op->out)
        operands.out.push_back({operand(write.tensor, op.micro_batch), write.access});
    return operands;
}

bool TensorMemory::moves_with_micro_batch(const step::Op& op) const {
    for (const step::TensorId id : op.in)
        if (root(id).slots > 1) return true;
    for (const step::Write& write : op.out)
        if (root(write.tensor).slots > 1) return true;
    return false;
}

void TensorMemory::initialise() const {
    arena_.touch();
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
        const step::Tensor& tensor = graph_.tensors[i];
        if (tensor.initial.kind == step::Initial::Kind::none || plan_.offset[i] < 0) continue;
        for (std::int32_t slot = 0; slot < tensor.slots; ++slot)
            initialise(step::TensorId{static_cast<std::int32_t>(i)}, slot);
    }
}

void TensorMemory::initialise(step::TensorId id, std::int32_t slot) const {
    const step::Tensor& tensor = graph_.tensor(id);
    const GlobalIndex global(tensor, graph_.mesh, rank_);
    const FirstValue first{tensor.initial, graph_.seed};
    const Operand target = operand(id, slot);
    if (tensor.dtype == DType::int32) {
        fill<std::int32_t>(target, global, slot, [&](std::int64_t counter) { return first.integer(counter); });
        return;
    }
    with_type(tensor.dtype, [&](auto type) {
        using T = decltype(type);
        fill<T>(target, global, slot, [&](std::int64_t counter) { return store<T>(first(counter)); });
    });
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
