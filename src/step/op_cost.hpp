// What an op costs at least, from its sizes: floating-point operations and memory traffic.
#pragma once

#include "step/graph.hpp"

namespace lockstep::step {

/// Floating-point operations of a compute op; a multiply-add is 2. Products are exact: gemm 2 b m n k, convolution
/// 2 n k' h' w' (c / groups) kernel^2 in each pass, attention 2 x 2 b heads s^2 d forward and twice that backward (all
/// scores, causal or not; a ring step has s local queries against s keys, so that the steps of all ranks add up to the
/// whole). Others count per element as model/cost.hpp does. 0 for movement.
Flops flops_of(const Op& op);

/// Least traffic: each operand read once, each result written once, and read too where it is added to; of a table only
/// the rows that are looked up. A collective: the bytes of its buffer; a P2P group: the bytes it sends and receives; a
/// StreamWait: none.
Bytes bytes_of(const StepGraph& graph, const Op& op);

}  // namespace lockstep::step
