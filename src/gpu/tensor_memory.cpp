#include "gpu/tensor_memory.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/first_values.hpp"
#include "step/storage.hpp"

namespace lockstep::gpu {
namespace {

/// Position in memory of the element with this row-major index of [n, c, h, w].
std::int64_t stored_at(const Operand& o, std::int64_t index) {
    if (o.layout == step::Layout::row_major || o.shape.rank() != 4) return index;
    const std::int64_t channels = o.shape[1], pixels = o.shape[2] * o.shape[3];
    const std::int64_t image = index / (channels * pixels), channel = index / pixels % channels, pixel = index % pixels;
    return (image * pixels + pixel) * channels + channel;
}

float value_at(const Operand& o, const std::byte* bytes, std::int64_t i) {
    if (o.dtype == DType::int32) return static_cast<float>(reinterpret_cast<const std::int32_t*>(bytes)[i]);
    if (o.dtype == DType::uint8) return static_cast<float>(bytes[i]);
    return with_type(o.dtype, [&](auto type) { return load(reinterpret_cast<const decltype(type)*>(bytes)[i]); });
}

}  // namespace

TensorMemory::TensorMemory(const step::StepGraph& graph, int rank)
    : graph_(graph),
      rank_(rank),
      plan_(step::plan_memory(graph, graph.rank_class(rank))),
      arena_(allocate_device(plan_.arena_bytes, "the tensors of this rank")) {}

Operand TensorMemory::operand(step::TensorId id, std::int32_t micro_batch) const {
    return operand_at(id, step::byte_offset(graph_, plan_, rank_, id, micro_batch));
}

Operand TensorMemory::operand_at(step::TensorId id, std::int64_t offset) const {
    const step::Tensor& tensor = graph_.tensor(id);
    Operand o;
    static_cast<step::Place&>(o) = step::place_of(tensor, graph_.mesh, rank_);
    o.dtype = tensor.dtype;
    o.layout = tensor.layout;
    o.data = arena_.get() + offset;
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

void TensorMemory::initialise(cudaStream_t stream) const {
    using Kind = step::Initial::Kind;
    check_cuda(cudaMemsetAsync(arena_.get(), 0, static_cast<std::size_t>(plan_.arena_bytes), stream),
               "cudaMemsetAsync");
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
        const step::TensorId id{static_cast<std::int32_t>(i)};
        const step::Tensor& tensor = graph_.tensors[i];
        const step::Tensor& storage = step::storage_of(graph_, id);
        const bool is_kept = plan_.holds(id) && storage.lifetime == step::Lifetime::carried;
        if (tensor.initial.kind == Kind::none || !is_kept) continue;
        for (std::int32_t slot = 0; slot < storage.slots; ++slot) {
            if (tensor.initial.kind == Kind::part_of)
                write_part_of_views(graph_, rank_, id, operand(id, slot), stream);
            else
                write_first_values(tensor.initial, graph_.seed, slot, operand(id, slot), stream);
        }
    }
}

std::vector<float> TensorMemory::read(step::TensorId id) const {
    const step::Tensor& tensor = graph_.tensor(id);
    if (!plan_.holds(id))
        throw RuntimeError(fmt::format("tensor {} can't be read (this rank keeps no copy of it)", tensor.name));
    const Operand from = operand(id, graph_.micro_batches - 1);
    std::vector<std::byte> bytes(static_cast<std::size_t>(from.bytes()));
    check_cuda(cudaMemcpy(bytes.data(), from.data, bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::vector<float> values(static_cast<std::size_t>(from.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = value_at(from, bytes.data(), stored_at(from, static_cast<std::int64_t>(i)));
    return values;
}

}  // namespace lockstep::gpu
