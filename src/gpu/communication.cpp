#include "gpu/communication.hpp"

#include <fmt/format.h>

#include <functional>
#include <optional>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"

namespace lockstep::gpu {
namespace {

using Kind = step::CollectiveKind;
using Bound = std::variant<BoundCollective, BoundMessages, BoundCopies>;

/// How NCCL names the type; nothing for fp8, of which a graph doesn't say which one.
std::optional<ncclDataType_t> type_of(DType dtype) {
    switch (dtype) {
        case DType::fp64: return ncclFloat64;
        case DType::fp32: return ncclFloat32;
        case DType::fp16: return ncclFloat16;
        case DType::bf16: return ncclBfloat16;
        case DType::int32: return ncclInt32;
        case DType::int64: return ncclInt64;
        case DType::int8: return ncclInt8;
        case DType::uint8: return ncclUint8;
        case DType::fp8: break;
    }
    return std::nullopt;
}

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce_scatter; }

ncclRedOp_t reduction_of(step::Reduction reduction) {
    switch (reduction) {
        case step::Reduction::sum: return ncclSum;
        case step::Reduction::average: return ncclAvg;
        case step::Reduction::max: return ncclMax;
    }
    throw LogicError("unknown reduction");
}

struct Region {
    const std::byte* begin;
    std::size_t bytes;
};
Region region_of(const Operand& operand) {
    return {static_cast<const std::byte*>(operand.data), static_cast<std::size_t>(operand.bytes())};
}
bool overlap(const Region& a, const Region& b) {
    return std::less<>{}(a.begin, b.begin + b.bytes) && std::less<>{}(b.begin, a.begin + a.bytes);
}

/// A collective before it is known that it fits.
struct Draft {
    const step::Op& op;
    const step::Collective& collective;
    const Operand& in;
    const Operand& out;
    std::size_t ranks;
    std::size_t member;

    std::size_t part() const {
        return static_cast<std::size_t>(collective.count) * static_cast<std::size_t>(size_of(collective.dtype).value);
    }
    void expect_sizes() const {
        const Kind kind = collective.kind;
        const bool reads_all = kind == Kind::reduce_scatter || kind == Kind::all_to_all;
        const bool writes_all = kind == Kind::all_gather || kind == Kind::all_to_all;
        const std::size_t read = part() * (reads_all ? ranks : 1), written = part() * (writes_all ? ranks : 1);
        if (region_of(in).bytes != read || region_of(out).bytes != written)
            throw LogicError(fmt::format(
                "collective {} of count {} among {} ranks reads {} bytes and writes {}, but "
                "its buffers have {} and {}",
                op.name, collective.count, ranks, read, written, region_of(in).bytes, region_of(out).bytes));
        if (reduces(kind) && (in.dtype != collective.dtype || out.dtype != collective.dtype))
            throw LogicError(fmt::format("collective {} adds {} but its buffers hold {} and {}", op.name,
                                         to_string(collective.dtype), to_string(in.dtype), to_string(out.dtype)));
    }
    /// Where a buffer must lie in the other for NCCL to work in place.
    const void* in_place_start() const {
        const auto* const target = static_cast<const std::byte*>(out.data);
        const auto* const source = static_cast<const std::byte*>(in.data);
        switch (collective.kind) {
            case Kind::all_gather: return target + member * part() == source ? in.data : nullptr;
            case Kind::reduce_scatter: return source + member * part() == target ? in.data : nullptr;
            case Kind::all_reduce:
            case Kind::broadcast: return source == target ? in.data : nullptr;
            case Kind::all_to_all: break;
        }
        return nullptr;
    }
    void expect_apart_or_in_place() const {
        if (!overlap(region_of(in), region_of(out)) || in_place_start() != nullptr) return;
        throw LogicError(
            fmt::format("collective {} writes into what it reads, where NCCL can't work in place "
                        "(its buffers start {} bytes apart)",
                        op.name, static_cast<const std::byte*>(out.data) - static_cast<const std::byte*>(in.data)));
    }
};

Bound bind_collective(const step::Op& op, const step::Collective& collective, const Operands& operands,
                      const NcclCommunicator& communicator) {
    if (operands.in.size() != 1 || operands.out.size() != 1)
        throw LogicError(fmt::format("collective {} must have one buffer in and one out", op.name));
    const Draft draft{op,
                      collective,
                      operands.in[0],
                      operands.out[0],
                      static_cast<std::size_t>(communicator.size()),
                      static_cast<std::size_t>(communicator.member())};
    draft.expect_sizes();
    draft.expect_apart_or_in_place();
    if (communicator.size() == 1) {
        BoundCopies alone;
        if (draft.in.data != draft.out.data) alone.copies.push_back({draft.in.data, draft.out.data, draft.part()});
        return alone;
    }
    const auto type = type_of(collective.dtype);
    if (!type && reduces(collective.kind))
        throw InputError(
            fmt::format("op {} can't add {} numbers (NCCL has two formats of that size, and graphs name "
                        "neither); choose a framework profile without that wire type",
                        op.name, to_string(collective.dtype)));
    return BoundCollective{collective.kind,
                           draft.in.data,
                           draft.out.data,
                           static_cast<std::size_t>(collective.count),
                           type.value_or(ncclUint8),
                           reduction_of(collective.reduction),
                           draft.part()};
}

std::vector<BoundMessages::Message> bind_side(const step::StepGraph& graph, int rank, const step::P2PGroup& group,
                                              const std::vector<step::Message>& messages, auto&& buffer) {
    std::vector<BoundMessages::Message> bound;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Operand& operand = buffer(i);
        bound.push_back({operand.data, static_cast<std::size_t>(operand.elements()),
                         type_of(operand.dtype).value_or(ncclUint8),
                         step::peer_member(graph, rank, group.communicator, messages[i].peer)});
    }
    return bound;
}

/// A rank's messages to itself: the n-th send meets the n-th receive.
BoundCopies copies_of(const step::Op& op, const Operands& operands) {
    BoundCopies alone;
    for (std::size_t i = 0; i < operands.in.size(); ++i) {
        const Operand &from = operands.in[i], &to = operands.out[i];
        if (from.bytes() != to.bytes())
            throw LogicError(fmt::format("message group {} sends {} bytes to itself where it receives {}", op.name,
                                         from.bytes(), to.bytes()));
        alone.copies.push_back({from.data, to.data, static_cast<std::size_t>(from.bytes())});
    }
    return alone;
}

Bound bind_messages(const step::StepGraph& graph, int rank, const step::Op& op, const step::P2PGroup& group,
                    const Operands& operands, const NcclCommunicator& communicator) {
    const bool alone = communicator.size() == 1;
    if (operands.in.size() != group.sends.size() || operands.out.size() != group.receives.size() ||
        (alone && group.sends.size() != group.receives.size()))
        throw LogicError(
            fmt::format("message group {} has {} sends and {} receives among {} ranks, and {} and {} "
                        "buffers",
                        op.name, group.sends.size(), group.receives.size(), communicator.size(), operands.in.size(),
                        operands.out.size()));
    if (alone) return copies_of(op, operands);
    const auto in = [&](std::size_t i) -> const Operand& { return operands.in[i]; };
    const auto out = [&](std::size_t i) -> const Operand& { return operands.out[i]; };
    return BoundMessages{bind_side(graph, rank, group, group.sends, in),
                         bind_side(graph, rank, group, group.receives, out)};
}

Bound bind(const step::StepGraph& graph, int rank, const step::Op& op, const Operands& operands,
           const NcclCommunicator& communicator) {
    if (const auto* collective = std::get_if<step::Collective>(&op.kind))
        return bind_collective(op, *collective, operands, communicator);
    if (const auto* group = std::get_if<step::P2PGroup>(&op.kind))
        return bind_messages(graph, rank, op, *group, operands, communicator);
    throw LogicError(fmt::format("op {} can't run on a communication stream of a GPU", op.name));
}

std::string describe(const step::Op& op, const Operands& operands, const NcclCommunicator& communicator) {
    std::int64_t sent = 0, received = 0;
    for (const Operand& operand : operands.in) sent += operand.bytes();
    for (const Operand& operand : operands.out) received += operand.bytes();
    return fmt::format("{} ({}, {} bytes) over {} ({} ranks)", op.name, step::kind_name(op), std::max(sent, received),
                       communicator.name(), communicator.size());
}

// ---- what is called; the first error of a group counts, and the group is closed all the same

template <class F>
ncclResult_t in_group(F&& calls) {
    ncclResult_t result = ncclGroupStart();
    if (result != ncclSuccess) return result;
    result = calls();
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess || result == ncclInProgress ? ended : result;
}

bool is_bad(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

ncclResult_t send_and_receive(const BoundMessages& m, ncclComm_t comm, cudaStream_t stream) {
    for (const BoundMessages::Message& one : m.sends)
        if (const auto result = ncclSend(one.data, one.count, one.type, one.peer, comm, stream); is_bad(result))
            return result;
    for (const BoundMessages::Message& one : m.receives)
        if (const auto result = ncclRecv(one.data, one.count, one.type, one.peer, comm, stream); is_bad(result))
            return result;
    return ncclSuccess;
}

/// By messages: ncclAlltoAll is younger (2.28) than the oldest NCCL that serves.
ncclResult_t all_to_all(const BoundCollective& c, int ranks, ncclComm_t comm, cudaStream_t stream) {
    for (int peer = 0; peer < ranks; ++peer) {
        const std::size_t offset = static_cast<std::size_t>(peer) * c.part_bytes;
        const auto* const from = static_cast<const std::byte*>(c.send) + offset;
        auto* const to = static_cast<std::byte*>(c.receive) + offset;
        if (const auto result = ncclSend(from, c.count, c.type, peer, comm, stream); is_bad(result)) return result;
        if (const auto result = ncclRecv(to, c.count, c.type, peer, comm, stream); is_bad(result)) return result;
    }
    return ncclSuccess;
}

ncclResult_t call(const BoundCollective& c, int ranks, ncclComm_t comm, cudaStream_t stream) {
    switch (c.kind) {
        case Kind::all_reduce: return ncclAllReduce(c.send, c.receive, c.count, c.type, c.reduction, comm, stream);
        case Kind::reduce_scatter:
            return ncclReduceScatter(c.send, c.receive, c.count, c.type, c.reduction, comm, stream);
        case Kind::all_gather: return ncclAllGather(c.send, c.receive, c.count, c.type, comm, stream);
        case Kind::broadcast: return ncclBroadcast(c.send, c.receive, c.count, c.type, 0, comm, stream);
        case Kind::all_to_all: return in_group([&] { return all_to_all(c, ranks, comm, stream); });
    }
    return ncclInvalidArgument;
}

}  // namespace

Communication::Communication(const step::StepGraph& graph, int rank, const step::Op& op, const Operands& operands,
                             NcclCommunicator& communicator)
    : description_(describe(op, operands, communicator)),
      communicator_(communicator),
      bound_(bind(graph, rank, op, operands, communicator)) {}

void Communication::enqueue(cudaStream_t stream) const {
    if (const auto* copies = std::get_if<BoundCopies>(&bound_)) {
        for (const BoundCopies::Copy& copy : copies->copies)
            check_cuda(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDeviceToDevice, stream),
                       "cudaMemcpyAsync");
        return;
    }
    communicator_.issue(description_, [&](ncclComm_t comm) {
        if (const auto* messages = std::get_if<BoundMessages>(&bound_))
            return in_group([&] { return send_and_receive(*messages, comm, stream); });
        return call(std::get<BoundCollective>(bound_), communicator_.size(), comm, stream);
    });
}

}  // namespace lockstep::gpu
