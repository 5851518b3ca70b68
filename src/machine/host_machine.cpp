#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "machine/host_probe.hpp"

namespace lockstep::machine {

namespace {

Device make_device(const HostStructure& structure, const HostRates& rates, int ranks) {
    Device device;
    device.name = "host-rank";
    device.title = fmt::format("{}, {} core{}", structure.cpu_model, rates.threads_per_rank,
                               rates.threads_per_rank == 1 ? "" : "s");
    device.kind = DeviceKind::cpu;
    device.architecture = structure.isa;
    device.peaks.push_back({MathType::fp32, rates.gemm_fp32, std::nullopt, false});
    if (rates.gemm_bf16) device.peaks.push_back({MathType::bf16, *rates.gemm_bf16, std::nullopt, false});
    device.memory = structure.memory / ranks;
    device.memory_bandwidth = rates.memory;
    device.l2 = structure.l2 * rates.threads_per_rank;
    device.sms = rates.threads_per_rank;
    device.sources = {fmt::format("measured by {} at {}", rates.how, rates.when)};
    device.notes = {"peak rates are those of the best measured matrix product, not of a data sheet"};
    return device;
}

/// Ranks in blocks on the sockets, each linked to its socket's memory at the measured rate of an all-reduce: a rank
/// sends and receives at that rate, so a ring over all of them has it as its bus bandwidth.
Topology make_topology(const HostStructure& structure, const HostRates& rates, int ranks) {
    Topology topology;
    topology.host_bridges = HostBridges::one_per_cpu;
    for (int i = 0; i < ranks; ++i) topology.vertices.push_back({VertexKind::gpu, fmt::format("gpu{}", i), i, -1});
    const int sockets = std::min(structure.sockets, ranks);
    for (int i = 0; i < sockets; ++i) topology.vertices.push_back({VertexKind::cpu, fmt::format("cpu{}", i), i, i});
    const Bandwidth rate = ranks > 1 ? rates.all_reduce_bus : rates.memory;
    for (int i = 0; i < ranks; ++i) {
        const int socket = i * sockets / ranks;
        topology.vertices[static_cast<std::size_t>(i)].numa_node = socket;
        topology.links.push_back({VertexId{i}, VertexId{ranks + socket}, LinkKind::memory, 1, rate, {}});
    }
    for (int i = 0; i + 1 < sockets; ++i)
        topology.links.push_back({VertexId{ranks + i}, VertexId{ranks + i + 1}, LinkKind::socket, 1, rate, {}});
    return topology;
}

/// Everything is measured, so the shares of the peaks are 1 but for the kinds measured apart. An all-reduce over n
/// ranks takes 2(n-1) steps, which share the measured latency.
Calibration make_calibration(const HostRates& rates) {
    Calibration c;
    c.gemm = 1;
    c.convolution = rates.convolution_share;
    c.attention = rates.attention_share;
    c.memory = 1;
    c.gemm_half_work_gflop = 0;
    c.kernel_overhead = rates.op_overhead;
    c.host_per_op = Seconds{0};
    c.link = 1;
    c.collective_base = Seconds{0};
    c.per_hop = rates.measured_ranks > 1 ? rates.all_reduce_latency / (2.0 * (rates.measured_ranks - 1)) : Seconds{0};
    c.compute_slowdown = rates.compute_slowdown;
    c.source = fmt::format("measured by {} at {}", rates.how, rates.when);
    return c;
}

}  // namespace

int host_ranks(const HostStructure& structure, const HostRates& rates) {
    if (rates.measured_ranks < 2) return 1;
    return std::max(rates.measured_ranks, structure.allowed_cores / std::max(1, rates.threads_per_rank));
}

Machine make_host_machine(const HostStructure& structure, const HostRates& rates, int ranks) {
    if (ranks < 1) throw InputError(fmt::format("a host of {} ranks (at least 1 is needed); use 1 or more", ranks));
    if (ranks > 1 && rates.all_reduce_bus.value <= 0)
        throw InputError(
            fmt::format("the host's all-reduce rate is not known (its rates were measured on one rank: {}); "
                        "run `lockstep machine detect` on at least 2 cores",
                        rates.how));
    Machine machine;
    machine.name = "host";
    machine.title = fmt::format("{} ({}, {} core{})", structure.host_name, structure.cpu_model, structure.cores,
                                structure.cores == 1 ? "" : "s");
    machine.device = make_device(structure, rates, ranks);
    machine.node = make_topology(structure, rates, ranks);
    machine.calibration = make_calibration(rates);
    machine.sources = {"structure: hwloc", "rates: " + rates.how + " at " + rates.when};
    if (structure.allowed_cores < structure.cores)
        machine.notes.push_back(
            fmt::format("this process may use {} of {} cores", structure.allowed_cores, structure.cores));
    if (ranks > rates.measured_ranks)
        machine.notes.push_back(
            fmt::format("rates were measured with {} rank{} at the same time; with {} the shared "
                        "memory may give each less",
                        rates.measured_ranks, rates.measured_ranks == 1 ? "" : "s", ranks));
    return machine;
}

}  // namespace lockstep::machine
