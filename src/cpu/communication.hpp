// Communication ops of a rank, prepared: what to start on which world, and what is left to do when the data are there.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "cpu/kernel.hpp"
#include "step/graph.hpp"
#include "world/world.hpp"

namespace lockstep::cpu {

/// A collective bound to its buffers. `mean_of` > 1: the sum is divided by it afterwards.
struct BoundCollective {
    step::CollectiveKind kind = step::CollectiveKind::all_reduce;
    std::span<const std::byte> send;
    std::span<std::byte> receive;
    world::Number number = world::Number::f32;
    world::Reduce reduce = world::Reduce::sum;
    DType dtype = DType::fp32;
    int mean_of = 1;
};
struct BoundMessages {
    std::vector<world::Send> sends;
    std::vector<world::Receive> receives;
};
/// The data pipeline: inputs are in place, but a batch may not come faster than this.
struct BoundInput {
    Nanoseconds least_time;
};
using BoundCommunication = std::variant<BoundCollective, BoundMessages, BoundInput>;

/// Binds an op of a communication or input stream to its operands, as TensorMemory lists them. Throws LogicError for
/// what such a stream can't carry and InputError for element types no World can reduce.
BoundCommunication bind_communication(const step::StepGraph& graph, int rank, const step::Op& op,
                                      const Operands& operands);

/// An op on its way. Never blocks.
class OpInFlight {
public:
    /// Posts the op. The bound op must outlive this.
    OpInFlight(const BoundCommunication& op, world::World* world, Nanoseconds now);
    /// Goes on with it: true when it is complete.
    bool progress(Nanoseconds now);

private:
    void average_piece();
    const BoundCommunication* op_;
    std::unique_ptr<world::Request> request_;
    Nanoseconds earliest_end_;
    std::int64_t averaged_ = 0;  // elements
};

}  // namespace lockstep::cpu
