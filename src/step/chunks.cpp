#include "step/chunks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/stages.hpp"

namespace lockstep::step {

namespace {

/// The layer whose output goes from a chunk to the next; all others end where they begin.
void find_crossings(Assembly& a) {
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
        const model::LayerId reader{static_cast<std::int32_t>(i)};
        for (const model::LayerId from : a.layer(reader).inputs) {
            if (!from.is_valid() || a.chunk_of[from.index()] == a.chunk_of[i]) continue;
            Chunk& there = a.chunks[static_cast<std::size_t>(a.chunk_of[i])];
            Chunk& here = a.chunks[static_cast<std::size_t>(a.chunk_of[from.index()])];
            const bool is_next = there.number == here.number + 1;
            if (!is_next || (here.leaving.is_valid() && here.leaving != from))
                throw InputError(fmt::format(
                    "a pipeline can't be cut between {} and {} ({} tensors would cross, one can); give other "
                    "stage_blocks or use pp: 1",
                    a.layer(from).name, a.layer(reader).name, is_next ? "two" : "skipping"));
            here.leaving = there.arriving = from;
        }
    }
}

TensorId root(const Assembly& a, TensorId id) {
    const Tensor& tensor = a.graph.tensor(id);
    return tensor.view ? tensor.view->of : id;
}

void give_slots(Assembly& a, TensorId id, std::int32_t slots) {
    if (!id.is_valid()) return;
    Tensor& tensor = a.graph.graph().tensors[root(a, id).index()];
    if (tensor.lifetime == Lifetime::micro_batch) tensor.slots = std::max(tensor.slots, std::min(slots, a.passes()));
}

}  // namespace

void make_chunks(Assembly& a) {
    a.chunk_of = plan::chunk_of_layer(a.model(), a.input.plan);
    a.chunks.resize(static_cast<std::size_t>(a.input.plan.chunks()));
    for (std::size_t i = 0; i < a.chunks.size(); ++i) {
        a.chunks[i].number = static_cast<int>(i);
        a.chunks[i].stage = static_cast<int>(i) % a.mesh().pp;
    }
    for (std::size_t i = 0; i < a.chunk_of.size(); ++i)
        a.chunks[static_cast<std::size_t>(a.chunk_of[i])].layers.push_back({static_cast<std::int32_t>(i)});
    if (a.chunks.size() == 1) return;
    find_crossings(a);
    for (int stage = 0; stage < a.mesh().pp; ++stage) {
        const auto order = order_of_stage(a, stage);
        for (Chunk& chunk : a.chunks)
            if (chunk.stage == stage) chunk.in_flight = plan::most_in_flight(order, chunk.number / a.mesh().pp);
    }
}

void make_boundary_tensors(Assembly& a, Chunk& chunk) {
    if (chunk.arriving.is_valid())
        chunk.received = a.add_output(fmt::format("chunk{}.received", chunk.number), chunk.arriving);
    if (chunk.leaving.is_valid() && a.layers[chunk.leaving.index()].needs_gradient)
        chunk.received_gradient = a.add_output(fmt::format("chunk{}.received_gradient", chunk.number), chunk.leaving);
}

void assign_slots(Assembly& a, Chunk& chunk) {
    if (a.chunks.size() == 1) return;
    std::vector<bool> forward(a.graph.graph().tensors.size(), false), backward = forward;
    for (const Op& op : a.graph.block(chunk.forward).ops)
        for (const Write& write : op.out) forward[root(a, write.tensor).index()] = true;
    if (chunk.received.is_valid()) forward[root(a, chunk.received).index()] = true;
    for (const Op& op : a.graph.block(chunk.backward).ops) {
        for (const TensorId id : op.in) {
            const TensorId storage = root(a, id);
            if (forward[storage.index()] && !backward[storage.index()]) give_slots(a, storage, chunk.in_flight);
        }
        for (const Write& write : op.out) backward[root(a, write.tensor).index()] = true;
    }
    // A message may still be on its way when the pass after the next one begins; one is awaited ahead.
    if (chunk.received.is_valid()) {
        const std::int32_t slots = a.graph.tensor(root(a, chunk.received)).slots;
        give_slots(a, chunk.received, slots + 1);
    }
    for (const TensorId id : {chunk.received_gradient, chunk.sent_gradient}) give_slots(a, id, 2);
    if (chunk.leaving.is_valid()) give_slots(a, a.layers[chunk.leaving.index()].output, 2);
}

std::vector<plan::PipelineSlot> order_of_stage(const Assembly& a, int stage) {
    // Without a pipeline all schedules are the same: nobody waits between a forward pass and its backward pass.
    const plan::Schedule schedule = a.mesh().pp == 1 ? plan::Schedule::one_forward_one_backward : a.split().schedule;
    return plan::pipeline_order(schedule, a.mesh().pp, a.split().vpp, stage, a.passes());
}

}  // namespace lockstep::step
