// Machines made in place, so that tests of costs don't depend on data files. Rates as printed in the data sheets.
#pragma once

#include "machine/machine.hpp"

namespace lockstep::cost {

/// 8 A100: 12 NVLinks of 25 GB/s each to one switch, PCIe 4.0 to one CPU, 8 NICs.
inline machine::Machine a100_machine(int nodes = 1) {
    using machine::LinkKind;
    using machine::VertexKind;
    machine::Machine m;
    m.name = "a100x8";
    m.device.name = "a100";
    m.device.peaks = {{MathType::fp32, 19.5_TFLOPS, {}, false},
                      {MathType::tf32, 156_TFLOPS, {}, true},
                      {MathType::fp16, 312_TFLOPS, {}, true},
                      {MathType::bf16, 312_TFLOPS, {}, true}};
    m.device.memory_bandwidth = 1555_GBps;
    m.device.pcie.per_direction = 32_GBps;
    for (int i = 0; i < 8; ++i) m.node.vertices.push_back({VertexKind::gpu, "gpu" + std::to_string(i), i, 0});
    const machine::VertexId nvswitch{8}, cpu{9};
    m.node.vertices.push_back({VertexKind::nvswitch, "nvswitch0", 0, -1});
    m.node.vertices.push_back({VertexKind::cpu, "cpu0", 0, 0});
    for (std::int32_t i = 0; i < 8; ++i) {
        m.node.links.push_back({machine::VertexId{i}, nvswitch, LinkKind::nvlink, 12, 300_GBps, {}});
        m.node.links.push_back({machine::VertexId{i}, cpu, LinkKind::pcie, 1, 32_GBps, {}});
    }
    m.nodes = nodes;
    if (nodes > 1) m.network = machine::Network{"hdr", 25_GBps, 8, 2_us, 1, {}};
    return m;
}

inline machine::Device v100() {
    machine::Device device;
    device.name = "v100";
    device.peaks = {{MathType::fp32, 15.7_TFLOPS, {}, false}, {MathType::fp16, 125_TFLOPS, {}, true}};
    device.memory_bandwidth = 900_GBps;
    device.pcie.per_direction = 16_GBps;
    return device;
}

}  // namespace lockstep::cost
