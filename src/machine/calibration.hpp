// Constants that say how much of the peaks is reached; each set knows its source.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "config/document.hpp"

namespace lockstep::machine {

/// First cost model. Efficiencies are shares of the peak in (0, 1]; of a CPU, whose peak is the measured rate of
/// products, convolution and attention may be above 1.
struct Calibration {
    double gemm = 0.8;                  ///< large matrix products over the dense peak
    double convolution = 0.6;           ///< convolutions over the dense peak
    double attention = 0.5;             ///< fused attention over the dense peak
    double memory = 0.85;               ///< streaming kernels over the memory bandwidth
    double gemm_half_work_gflop = 0.5;  ///< flops (in 1e9) at which half of `gemm` is reached; 0: no ramp
    Seconds kernel_overhead{4e-6};      ///< device time per kernel whatever its size
    Seconds host_per_op{0};             ///< added by a slow host; a framework's own host time is apart
    double link = 0.8;  ///< bus bandwidth of a large collective over the channels' total; above 1 where switches reduce
    Seconds collective_base{20e-6};  ///< fixed time of a collective inside a node
    Seconds per_hop{3e-6};           ///< added per ring step inside a node
    Seconds network_per_hop{15e-6};  ///< added per ring step between nodes
    /// Share of the rate of the NICs that a large collective reaches. The default is the mean of three measurements: 8
    /// x 200 Gb/s 192 of 200 GB/s and 8 x 400 Gb/s 380 of 400 (NVIDIA, NCCL slides), 4 x 200 Gb/s 86 of 100 (nccl-tests
    /// log, two nodes).
    double network = 0.92;
    double compute_slowdown = 0.1;  ///< share of compute speed lost while a collective runs beside it
    std::string source = "default constants, not measured";
    std::vector<std::string> constant_sources;  ///< "gemm: ...", one for each constant that has its own source
};

/// Reads a calibration document: keys named as the members, each a value or {value, source}. What is absent keeps its
/// value of `base`. All errors go to `diagnostics`.
Calibration read_calibration(const config::Node& node, config::Diagnostics& diagnostics, Calibration base = {});

/// As files and sources call the constants, in the order of the members.
std::span<const std::string_view> constant_names();

/// Whether a calibration document has every constant, so that nothing of a base is left.
bool has_all_constants(const config::Node& node);

/// Replaces the source of one constant.
void set_source(Calibration& calibration, std::string_view constant, std::string_view source);

}  // namespace lockstep::machine
