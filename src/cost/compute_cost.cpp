#include "cost/compute_cost.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cost/peak_rate.hpp"

namespace lockstep::cost {

namespace {

struct Roofline {
    const machine::Device& device;
    const machine::Calibration& calibration;
    const step::StepGraph& graph;
    const step::Op& op;

    Seconds memory_time(Bytes bytes) const {
        const Bandwidth reached = device.memory_bandwidth * calibration.memory;
        if (!(reached.value > 0))
            throw InputError(
                fmt::format("{} has no memory bandwidth; give memory_bandwidth in its device file", device.name));
        return bytes / reached;
    }

    /// Time of matrix units at `efficiency`, with the ramp.
    Seconds matrix_time(double efficiency) const {
        const Flops half_work{calibration.gemm_half_work_gflop * 1e9};
        return (op.flops + half_work) / (peak_rate(device, op.math) * efficiency);
    }

    Seconds product(double efficiency) const { return std::max(matrix_time(efficiency), memory_time(op.bytes)); }

    Seconds operator()(const step::Gemm&) const { return product(calibration.gemm); }
    Seconds operator()(const step::Convolution&) const { return product(calibration.convolution); }
    Seconds operator()(const step::Attention& a) const {
        if (a.algorithm == plan::AttentionAlgorithm::flash) return product(calibration.attention);
        // Kernels one after the other; the scores are written and read by the products and by the softmax between them
        // (4 passes forward; 6 backward, where their gradient is made too).
        const double scores = static_cast<double>(a.batch * a.heads) * static_cast<double>(a.seq * (a.seq + a.memory));
        // Scores of relative positions are written, shifted into place (read and written) and added.
        const double passes = (a.pass == step::Pass::forward ? 4 : 6) + (a.relative ? 4 : 0);
        const Bytes traffic = scores * passes * size_of(graph.tensor(op.in.at(0)).dtype);
        return matrix_time(calibration.gemm) + memory_time(op.bytes + traffic) + 3 * calibration.kernel_overhead;
    }
    /// Everything else works in fp32 registers, whatever the storage.
    template <class Other>
    Seconds operator()(const Other&) const {
        const Seconds arithmetic = op.flops.value > 0 ? op.flops / peak_rate(device, MathType::fp32) : Seconds{0};
        return std::max(arithmetic, memory_time(op.bytes));
    }
};

Seconds copy_time(const Roofline& roofline, const step::Copy& copy) {
    using Kind = step::Copy::Kind;
    if (copy.kind == Kind::bucket_in || copy.kind == Kind::bucket_out) return roofline.memory_time(roofline.op.bytes);
    Bytes payload;
    for (const step::Write& write : roofline.op.out) payload += roofline.graph.tensor(write.tensor).bytes();
    const machine::Device& device = roofline.device;
    Seconds moved;
    if (device.kind == machine::DeviceKind::cpu) {
        moved = roofline.memory_time(2 * payload);
    } else if (device.pcie.per_direction.value > 0) {
        moved = payload / device.pcie.per_direction;
    } else {
        throw InputError(fmt::format("{} has no PCIe rate (needed by {}); give pcie in its device file", device.name,
                                     roofline.op.name));
    }
    return copy.kind == Kind::input ? std::max(moved, copy.least_time) : moved;
}

}  // namespace

Seconds compute_time(const machine::Device& device, const machine::Calibration& calibration,
                     const step::StepGraph& graph, const step::Op& op) {
    const Roofline roofline{device, calibration, graph, op};
    if (const auto* compute = std::get_if<step::Compute>(&op.kind))
        return std::visit(roofline, *compute) + (op.is_fused ? Seconds{0} : calibration.kernel_overhead);
    if (const auto* copy = std::get_if<step::Copy>(&op.kind))
        return copy_time(roofline, *copy) + calibration.kernel_overhead;
    if (std::holds_alternative<step::HostSync>(op.kind) || std::holds_alternative<step::StreamWait>(op.kind))
        return Seconds{0};
    throw LogicError("the compute time of a communication op was asked for: " + op.name);
}

}  // namespace lockstep::cost
