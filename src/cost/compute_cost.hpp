// How long one op takes on a device that does nothing else: a roofline with the share of the peaks that is reached.
#pragma once

#include "machine/machine.hpp"
#include "step/graph.hpp"

namespace lockstep::cost {

/// Device time of any op that is no communication. With F flops, B bytes (step::Op), peak P of the op's math type,
/// memory bandwidth M, and calibration e (efficiency of the kind), m (memory), h (half work), o (kernel overhead):
///     gemm, convolution, attention:  max((F + h) / (P e), B / (M m)) + o
///     all other compute:             max(F / P_fp32, B / (M m)) + o
///     unfused attention:             (F + h) / (P gemm) + (B + score traffic) / (M m) + 4 o
///     bucket copies:                 B / (M m) + o
///     copies from and to the host:   B / PCIe + o;  the input pipeline: at least its `least_time`
///     host synchronisation:          0 (the wait is the simulator's)
/// (F + h) / (P e) is F over a rate that ramps as F / (F + h): half of e at F = h. Roofline: Williams, Waterman and
/// Patterson 2009. h is given for the gemm and applied to all three, whose kernels fill the device alike.
/// Throws InputError when the device has no units for the op's math type, or lacks a rate the op needs.
Seconds compute_time(const machine::Device& device, const machine::Calibration& calibration,
                     const step::StepGraph& graph, const step::Op& op);

}  // namespace lockstep::cost
