// Constants of the cost model from what was measured: the formulas of cost/, solved for their constants.
#pragma once

#include <string>
#include <vector>

#include "calibrate/points.hpp"
#include "machine/machine.hpp"

namespace lockstep::calibrate {

/// A measured time beside what the model says with the fitted constants.
struct Comparison {
    enum class Kind { product, convolution, collective };
    Kind kind = Kind::product;
    std::string what, size;
    Seconds measured, fitted;
    double residual() const { return fitted / measured - 1; }
};

/// Sets gemm, gemm_half_work_gflop, convolution, memory and kernel_overhead of the machine's calibration; `source` is
/// said at each of them. With F flops, P the peak of the math type, o the overhead, e and h the constants:
///     products      t - o = (F + h) / (P e)     least squares in relative time, e at most 1
///     convolutions  e_c so that the sum of (F + h) / (P e_c) + o is the sum of the times
/// Constants are those of the math type that training uses most of the measured ones: bf16, fp16, tf32, fp32. A device
/// without peaks gets, per math type, the rate that its products grow to, so that e is 1.
/// Returns all products, then the convolutions of that math type, with those constants. Throws IncompleteError when a
/// math type has fewer than two sizes of products.
std::vector<Comparison> fit_device(machine::Machine& machine, const DevicePoints& points, const std::string& source);

/// Sets link, collective_base and per_hop likewise, from collectives over the first `ranks` GPUs of one node: base b,
/// hop h and link share l over channels C in
///     t = b + s h + f S / (C l)     s = 2(n-1), f = 2(n-1)/n of an all-reduce; half of both of an all-gather
/// by least squares in relative time, none negative. Where NCCL's protocols are offered (cost/nccl_offer.hpp) each
/// point counts by the one that it takes, and the constants are those of ring and simple. Throws IncompleteError when
/// the points can't tell them apart.
std::vector<Comparison> fit_collectives(machine::Machine& machine, int ranks,
                                        const std::vector<CollectivePoint>& points, const std::string& source);

/// What this calibration says of a constant that fit_* didn't set: that it was not measured, and where it is from.
/// `measured` is the source of those that were. Call last.
void name_unmeasured(machine::Calibration& calibration, const std::string& measured);

}  // namespace lockstep::calibrate
