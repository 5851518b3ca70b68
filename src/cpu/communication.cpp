#include "cpu/communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

world::Number number_of(DType dtype, const std::string& op) {
    switch (dtype) {
        case DType::fp32: return world::Number::f32;
        case DType::fp64: return world::Number::f64;
        case DType::bf16: return world::Number::bf16;
        case DType::int32: return world::Number::i32;
        case DType::int64: return world::Number::i64;
        default: break;
    }
    throw InputError(
        fmt::format("op {} can't reduce {} numbers between CPUs (their worlds add fp32, fp64, bf16 and "
                    "integers); choose a framework profile without that wire type",
                    op, to_string(dtype)));
}

std::span<std::byte> bytes_of(const Operand& operand) {
    return {static_cast<std::byte*>(operand.data), static_cast<std::size_t>(operand.bytes())};
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::less<>{}(a.data(), b.data() + b.size()) && std::less<>{}(b.data(), a.data() + a.size());
}

BoundCollective bind_collective(const step::StepGraph& graph, const step::Op& op, const step::Collective& collective,
                                const Operands& operands) {
    if (operands.in.size() != 1 || operands.out.size() != 1)
        throw LogicError(fmt::format("collective {} must have one buffer in and one out", op.name));
    BoundCollective bound;
    bound.kind = collective.kind;
    bound.send = bytes_of(operands.in[0]);
    bound.receive = bytes_of(operands.out[0]);
    bound.dtype = collective.dtype;
    const bool moves_apart =
        collective.kind == step::CollectiveKind::reduce_scatter || collective.kind == step::CollectiveKind::all_to_all;
    if (moves_apart && overlap(bound.send, bound.receive))
        throw LogicError(fmt::format("collective {} writes into what it reads", op.name));
    const bool reduces =
        collective.kind == step::CollectiveKind::all_reduce || collective.kind == step::CollectiveKind::reduce_scatter;
    if (reduces) bound.number = number_of(collective.dtype, op.name);
    if (collective.reduction == step::Reduction::max) bound.reduce = world::Reduce::max;
    if (reduces && collective.reduction == step::Reduction::average)
        bound.mean_of = static_cast<int>(graph.communicators[collective.communicator.index()].size);
    return bound;
}

BoundMessages bind_messages(const step::StepGraph& graph, int rank, const step::Op& op, const step::P2PGroup& group,
                            const Operands& operands) {
    if (operands.in.size() != group.sends.size() || operands.out.size() != group.receives.size())
        throw LogicError(fmt::format("message group {} has {} sends and {} receives, but {} and {} buffers", op.name,
                                     group.sends.size(), group.receives.size(), operands.in.size(),
                                     operands.out.size()));
    BoundMessages bound;
    for (std::size_t i = 0; i < group.sends.size(); ++i)
        bound.sends.push_back({bytes_of(operands.in[i]),
                               step::peer_member(graph, rank, group.communicator, group.sends[i].peer),
                               group.sends[i].tag});
    for (std::size_t i = 0; i < group.receives.size(); ++i)
        bound.receives.push_back({bytes_of(operands.out[i]),
                                  step::peer_member(graph, rank, group.communicator, group.receives[i].peer),
                                  group.receives[i].tag});
    return bound;
}

/// An all-gather whose own part is in place already: MPI allows no buffer to be read and written by one collective, so
/// that each rank sends its part to all others.
std::unique_ptr<world::Request> start_gather_in_place(const BoundCollective& c, world::World& world) {
    constexpr int tag = 0;
    const auto part = [&](int rank) { return c.receive.subspan(rank * c.send.size(), c.send.size()); };
    if (c.send.data() != part(world.rank()).data())
        throw LogicError("an all-gather whose own part lies elsewhere in the result");
    std::vector<world::Send> sends;
    std::vector<world::Receive> receives;
    for (int peer = 0; peer < world.size(); ++peer) {
        if (peer == world.rank()) continue;
        sends.push_back({c.send, peer, tag});
        receives.push_back({part(peer), peer, tag});
    }
    return world.start_exchange(sends, receives);
}

std::unique_ptr<world::Request> start(const BoundCollective& c, world::World& world) {
    const bool is_in_place = c.send.data() == c.receive.data();
    switch (c.kind) {
        case step::CollectiveKind::all_reduce:
            if (!is_in_place) std::memcpy(c.receive.data(), c.send.data(), c.receive.size());
            return world.start_all_reduce(c.receive, c.number, c.reduce);
        case step::CollectiveKind::reduce_scatter:
            return world.start_reduce_scatter(c.send, c.receive, c.number, c.reduce);
        case step::CollectiveKind::all_gather:
            if (overlap(c.send, c.receive)) return start_gather_in_place(c, world);
            return world.start_all_gather(c.send, c.receive);
        case step::CollectiveKind::broadcast:
            if (!is_in_place) std::memcpy(c.receive.data(), c.send.data(), c.receive.size());
            return world.start_broadcast(c.receive, 0);
        case step::CollectiveKind::all_to_all: return world.start_all_to_all(c.send, c.receive);
    }
    throw LogicError("unknown collective");
}

}  // namespace

BoundCommunication bind_communication(const step::StepGraph& graph, int rank, const step::Op& op,
                                      const Operands& operands) {
    if (const auto* collective = std::get_if<step::Collective>(&op.kind))
        return bind_collective(graph, op, *collective, operands);
    if (const auto* group = std::get_if<step::P2PGroup>(&op.kind))
        return bind_messages(graph, rank, op, *group, operands);
    if (const auto* copy = std::get_if<step::Copy>(&op.kind); copy != nullptr && copy->kind == step::Copy::Kind::input)
        return BoundInput{{static_cast<std::int64_t>(copy->least_time.value * 1e9)}};
    throw LogicError(fmt::format("op {} can't run on a communication stream of a CPU", op.name));
}

OpInFlight::OpInFlight(const BoundCommunication& op, world::World* world, Nanoseconds now) : op_(&op) {
    if (const auto* collective = std::get_if<BoundCollective>(op_))
        request_ = start(*collective, *world);
    else if (const auto* messages = std::get_if<BoundMessages>(op_))
        request_ = world->start_exchange(messages->sends, messages->receives);
    else
        earliest_end_ = now + std::get<BoundInput>(op).least_time;
}

bool OpInFlight::progress(Nanoseconds now) {
    if (request_ && !request_->test()) return false;
    request_.reset();
    const auto* collective = std::get_if<BoundCollective>(op_);
    if (collective == nullptr) return now >= earliest_end_;
    const std::int64_t bytes = collective->receive.size();
    const auto elements = bytes / static_cast<std::int64_t>(size_of(collective->dtype).value);
    if (collective->mean_of > 1 && averaged_ < elements) average_piece();
    return collective->mean_of == 1 || averaged_ >= elements;
}

void OpInFlight::average_piece() {
    constexpr std::int64_t piece = 1 << 18;  // elements: other streams wait for one piece at most
    const auto& c = std::get<BoundCollective>(*op_);
    with_type(c.dtype, [&](auto type) {
        using T = decltype(type);
        T* const data = reinterpret_cast<T*>(c.receive.data());
        const auto elements = static_cast<std::int64_t>(c.receive.size() / sizeof(T));
        const std::int64_t end = std::min(averaged_ + piece, elements);
        const float factor = 1.0F / static_cast<float>(c.mean_of);
        for_range(averaged_, end, [=](std::int64_t i) { data[i] = store<T>(load(data[i]) * factor); });
        averaged_ = end;
    });
}

}  // namespace lockstep::cpu
