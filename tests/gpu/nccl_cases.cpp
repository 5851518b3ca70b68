#include "gpu/nccl_cases.hpp"

#include <algorithm>

#include "gpu/nccl_harness.hpp"
#include "gpu/wire_check.hpp"

namespace lockstep::gpu::testing {
namespace {

using Kind = step::CollectiveKind;
using step::Reduction;

/// What rank `r` has at `i`: small whole numbers, so that sums and averages of up to 4 ranks are exact in every type.
float value(int r, std::int64_t i) { return static_cast<float>((i * 3 + r * 5 + i / 11) % 7); }

float reduced(Reduction reduction, int ranks, std::int64_t i) {
    float sum = 0, largest = 0;
    for (int r = 0; r < ranks; ++r) {
        sum += value(r, i);
        largest = std::max(largest, value(r, i));
    }
    if (reduction == Reduction::max) return largest;
    return reduction == Reduction::sum ? sum : sum / static_cast<float>(ranks);
}

Values values(int r, std::int64_t count, std::int64_t first = 0) {
    Values all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(value(r, first + i));
    return all;
}

constexpr DType types[] = {DType::fp32, DType::fp16, DType::bf16, DType::int32, DType::uint8};
constexpr std::int64_t counts[] = {1, 1023};
/// Of fp32: what the double moves in several pieces.
constexpr std::int64_t large_count = (1 << 18) + 77;

std::string name(const char* op, DType dtype, std::int64_t count, const char* how = "") {
    return fmt::format("{} of {} {}{}", op, count, to_string(dtype), how);
}

step::Collective collective(Kind kind, std::int64_t count, DType dtype, Reduction reduction = Reduction::sum) {
    return {kind, step::CommunicatorId{0}, reduction, count, dtype};
}

template <class F>
void for_types_and_counts(F&& f) {
    for (const DType dtype : types)
        for (const std::int64_t count : counts) f(dtype, count);
    f(DType::fp32, large_count);
}

void all_reduce(world::World& world) {
    const Rank rank(world);
    const int n = world.size();
    for_types_and_counts([&](DType dtype, std::int64_t count) {
        const bool is_whole = dtype == DType::int32 || dtype == DType::uint8;
        for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::max}) {
            if (is_whole && reduction == Reduction::average) continue;
            const step::Collective op = collective(Kind::all_reduce, count, dtype, reduction);
            const auto expected = [&](std::int64_t i) { return reduced(reduction, n, i); };
            const Buffer in(dtype, values(world.rank(), count)), out(dtype, count);
            rank.run(op, {{in.operand()}, {{out.operand(), {}}}});
            expect_values(out.read(), expected, name("all-reduce", dtype, count));
            rank.run(op, {{in.operand()}, {{in.operand(), {}}}});
            expect_values(in.read(), expected, name("all-reduce", dtype, count, " in place"));
        }
    });
}

void reduce_scatter(world::World& world) {
    const Rank rank(world);
    const int n = world.size();
    for_types_and_counts([&](DType dtype, std::int64_t count) {
        const std::int64_t first = count * world.rank();
        const step::Collective op = collective(Kind::reduce_scatter, count, dtype);
        const auto expected = [&](std::int64_t i) { return reduced(Reduction::sum, n, first + i); };
        const Buffer in(dtype, values(world.rank(), count * n)), out(dtype, count);
        rank.run(op, {{in.operand()}, {{out.operand(), {}}}});
        expect_values(out.read(), expected, name("reduce-scatter", dtype, count));
        rank.run(op, {{in.operand()}, {{in.operand(first, count), {}}}});
        expect_values(
            in.read(),
            [&](std::int64_t i) {
                const bool is_mine = i >= first && i < first + count;
                return is_mine ? reduced(Reduction::sum, n, i) : value(world.rank(), i);
            },
            name("reduce-scatter", dtype, count, " in place"));
    });
}

void all_gather(world::World& world) {
    const Rank rank(world);
    const int n = world.size();
    for_types_and_counts([&](DType dtype, std::int64_t count) {
        const step::Collective op = collective(Kind::all_gather, count, dtype);
        const auto expected = [&](std::int64_t i) { return value(static_cast<int>(i / count), i % count); };
        const Buffer in(dtype, values(world.rank(), count)), out(dtype, count * n), both(dtype, count * n);
        rank.run(op, {{in.operand()}, {{out.operand(), {}}}});
        expect_values(out.read(), expected, name("all-gather", dtype, count));
        both.write(count * world.rank(), values(world.rank(), count));
        rank.run(op, {{both.operand(count * world.rank(), count)}, {{both.operand(), {}}}});
        expect_values(both.read(), expected, name("all-gather", dtype, count, " in place"));
    });
}

void broadcast(world::World& world) {
    const Rank rank(world);
    for_types_and_counts([&](DType dtype, std::int64_t count) {
        const step::Collective op = collective(Kind::broadcast, count, dtype);
        const auto expected = [](std::int64_t i) { return value(0, i); };
        const Buffer in(dtype, values(world.rank(), count)), out(dtype, count);
        rank.run(op, {{in.operand()}, {{out.operand(), {}}}});
        expect_values(out.read(), expected, name("broadcast", dtype, count));
        rank.run(op, {{in.operand()}, {{in.operand(), {}}}});
        expect_values(in.read(), expected, name("broadcast", dtype, count, " in place"));
    });
}

void all_to_all(world::World& world) {
    const Rank rank(world);
    const int n = world.size();
    for_types_and_counts([&](DType dtype, std::int64_t count) {
        const Buffer in(dtype, values(world.rank(), count * n)), out(dtype, count * n);
        rank.run(collective(Kind::all_to_all, count, dtype), {{in.operand()}, {{out.operand(), {}}}});
        expect_values(
            out.read(),
            [&](std::int64_t i) { return value(static_cast<int>(i / count), count * world.rank() + i % count); },
            name("all-to-all", dtype, count));
    });
}

step::Message to(int offset, int tag) { return {{plan::Axis::dp, offset, true}, step::TensorId{0}, tag, 0}; }

/// Around a ring both ways at once, and two messages the same way: they meet in order.
void messages(world::World& world) {
    const Rank rank(world);
    const int n = world.size(), next = (world.rank() + 1) % n, before = (world.rank() + n - 1) % n;
    for_types_and_counts([&](DType dtype, std::int64_t count) {
        const std::int64_t shorter = count / 2 + 1;
        const Buffer first(dtype, values(world.rank(), count)), second(dtype, values(world.rank(), shorter, 100)),
            back(dtype, values(world.rank(), count, 200));
        const Buffer got_first(dtype, count), got_second(dtype, shorter), got_back(dtype, count);
        // Among two ranks all go the same way: the receives are in the order of the sends.
        const step::P2PGroup group{
            step::CommunicatorId{0}, {to(1, 0), to(1, 1), to(-1, 2)}, {to(-1, 0), to(-1, 1), to(1, 2)}};
        rank.run(group, {{first.operand(), second.operand(), back.operand()},
                         {{got_first.operand(), {}}, {got_second.operand(), {}}, {got_back.operand(), {}}}});
        const auto from = [&](int r, std::int64_t offset) {
            return [=](std::int64_t i) { return value(r, offset + i); };
        };
        expect_values(got_first.read(), from(before, 0), name("first message", dtype, count));
        expect_values(got_second.read(), from(before, 100), name("second message", dtype, count));
        expect_values(got_back.read(), from(next, 200), name("message back", dtype, count));
    });
}

/// Each rank sends on what it has just received, three times; the last one begins, all others receive first.
void pipeline(world::World& world) {
    const Rank rank(world);
    const int last = world.size() - 1;
    constexpr std::int64_t count = 5000;
    const Buffer data(DType::fp32, values(world.rank(), count));
    for (int turn = 0; turn < 3; ++turn) {
        const step::P2PGroup send{step::CommunicatorId{0}, {to(1, turn)}, {}};
        const step::P2PGroup receive{step::CommunicatorId{0}, {}, {to(-1, turn)}};
        if (world.rank() == last) rank.run(send, {{data.operand()}, {}});
        rank.run(receive, {{}, {{data.operand(), {}}}});
        if (world.rank() != last) rank.run(send, {{data.operand()}, {}});
    }
    expect_values(
        data.read(), [&](std::int64_t i) { return value(last, i); }, "pipeline");
}

/// Many at once, on a stream that nobody waits for: they stay in order.
void in_flight(world::World& world) {
    const Rank rank(world);
    constexpr std::int64_t count = 1000;
    constexpr int times = 20;
    const Buffer data(DType::fp32, Values(count, 1.0F));
    const Communication average(rank.graph, world.rank(),
                                rank.op(collective(Kind::all_reduce, count, DType::fp32, Reduction::average)),
                                {{data.operand()}, {{data.operand(), {}}}}, rank.communicator());
    const Communication sum(rank.graph, world.rank(), rank.op(collective(Kind::all_reduce, count, DType::fp32)),
                            {{data.operand()}, {{data.operand(), {}}}}, rank.communicator());
    for (int i = 0; i < times; ++i) {
        sum.enqueue(rank.stream.get());
        average.enqueue(rank.stream.get());
    }
    rank.communicator().synchronize(rank.stream.get(), "many in flight");
    float expected = 1;
    for (int i = 0; i < times; ++i) expected *= static_cast<float>(world.size());
    expect_values(
        data.read(), [&](std::int64_t) { return expected; }, "many in flight");
}

/// Two communicators on two streams: neither waits for the other.
void two_communicators(world::World& world) {
    step::StepGraph graph = dp_graph(world.size());
    graph.communicators.push_back({"second", {plan::Axis::dp}, world.size(), {}});
    graph.streams.push_back({step::Stream::Lane::compute, {}, "compute"});
    graph.streams.push_back({step::Stream::Lane::communication, step::CommunicatorId{1}, "second"});
    const auto communicators = make_communicators(graph, world, Seconds{60});
    if (communicators[0] == nullptr || communicators[1] != nullptr || communicators[2] == nullptr)
        throw RuntimeError("communicators are not by stream");
    constexpr std::int64_t count = 1000;
    const Stream streams[] = {make_stream(), make_stream()};
    const Buffer a(DType::fp32, values(world.rank(), count)), b(DType::fp32, values(world.rank(), count));
    const auto run = [&](const Buffer& data, NcclCommunicator& over, const Stream& stream) {
        step::Op op;
        op.kind = collective(Kind::all_reduce, count, DType::fp32);
        const Communication bound(graph, world.rank(), op, {{data.operand()}, {{data.operand(), {}}}}, over);
        bound.enqueue(stream.get());
    };
    run(a, *communicators[0], streams[0]);
    run(b, *communicators[2], streams[1]);
    communicators[0]->synchronize(streams[0].get(), "first");
    communicators[2]->synchronize(streams[1].get(), "second");
    const auto expected = [&](std::int64_t i) { return reduced(Reduction::sum, world.size(), i); };
    expect_values(a.read(), expected, "first communicator");
    expect_values(b.read(), expected, "second communicator");
}

void wire_check(world::World& world) {
    const Rank rank(world);
    check_wire(rank.communicator());
}

}  // namespace

std::vector<NcclCase> nccl_cases() {
    return {{"all_reduce", all_reduce}, {"reduce_scatter", reduce_scatter}, {"all_gather", all_gather},
            {"broadcast", broadcast},   {"all_to_all", all_to_all},         {"messages", messages},
            {"pipeline", pipeline},     {"in_flight", in_flight},           {"two_communicators", two_communicators},
            {"wire_check", wire_check}};
}

}  // namespace lockstep::gpu::testing
