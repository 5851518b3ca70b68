// The last choice of every enumeration that is recorded: a number beyond it is not believed.
#pragma once

#include "record/run_description.hpp"
#include "step/graph.hpp"

namespace lockstep::record {

// Enumerations are recorded as ordinals from 0, so new choices are only ever added at the end.
constexpr Precision last_choice(Precision) { return Precision::fp8; }
constexpr MathType last_choice(MathType) { return MathType::fp4; }
constexpr DType last_choice(DType) { return DType::uint8; }
constexpr model::Norm::Kind last_choice(model::Norm::Kind) { return model::Norm::Kind::rms; }
constexpr model::Pool::Kind last_choice(model::Pool::Kind) { return model::Pool::Kind::average; }
constexpr plan::Axis last_choice(plan::Axis) { return plan::Axis::pp; }
constexpr plan::Optimizer last_choice(plan::Optimizer) { return plan::Optimizer::adam; }
constexpr plan::AttentionAlgorithm last_choice(plan::AttentionAlgorithm) { return plan::AttentionAlgorithm::unfused; }
constexpr step::Phase last_choice(step::Phase) { return step::Phase::optimizer; }
constexpr step::Pass last_choice(step::Pass) { return step::Pass::backward_weights; }
constexpr step::Gemm::Transpose last_choice(step::Gemm::Transpose) { return step::Gemm::Transpose::yes; }
constexpr step::Elementwise::Kind last_choice(step::Elementwise::Kind) {
    return step::Elementwise::Kind::channel_scale_backward;
}
constexpr step::Attention::Part last_choice(step::Attention::Part) { return step::Attention::Part::ring; }
constexpr step::SoftmaxLoss::Part last_choice(step::SoftmaxLoss::Part) { return step::SoftmaxLoss::Part::finish; }
constexpr step::Shard::Order last_choice(step::Shard::Order) { return step::Shard::Order::zigzag; }
constexpr step::CollectiveKind last_choice(step::CollectiveKind) { return step::CollectiveKind::all_to_all; }
constexpr step::Reduction last_choice(step::Reduction) { return step::Reduction::max; }
constexpr step::Copy::Kind last_choice(step::Copy::Kind) { return step::Copy::Kind::device_to_host; }
constexpr step::HostSync::Reason last_choice(step::HostSync::Reason) { return step::HostSync::Reason::gradient_norm; }
constexpr step::Access last_choice(step::Access) { return step::Access::update; }
constexpr step::Stream::Lane last_choice(step::Stream::Lane) { return step::Stream::Lane::communication; }
constexpr step::Role last_choice(step::Role) { return step::Role::workspace; }
constexpr step::Lifetime last_choice(step::Lifetime) { return step::Lifetime::carried; }
constexpr step::Layout last_choice(step::Layout) { return step::Layout::opaque; }
constexpr step::Initial::Kind last_choice(step::Initial::Kind) { return step::Initial::Kind::part_of; }
constexpr Origin last_choice(Origin) { return Origin::rehearsed; }
constexpr Status last_choice(Status) { return Status::failed; }

}  // namespace lockstep::record
