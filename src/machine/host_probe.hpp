// The host this program runs on, as a machine: structure from hwloc, rates from a short measurement that is kept with
// its source.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "machine/machine.hpp"

namespace lockstep::machine {

/// What hwloc sees without measuring.
struct HostStructure {
    std::string host_name;
    std::string cpu_model;
    int cores = 0;          ///< physical cores of the machine
    int allowed_cores = 0;  ///< cores this process may run on (its cpuset)
    int numa_nodes = 0;
    int sockets = 0;
    Bytes memory;
    Bytes l2;         ///< of one core
    Bytes l3;         ///< of one socket
    std::string isa;  ///< "avx2", "avx512", "avx512_bf16", "amx" ...
    bool has_native_bf16 = false;
};
HostStructure read_host_structure();

/// Rates of one rank that has `threads_per_rank` cores, measured by the cpu floor and the world (machine/ itself
/// measures nothing).
struct HostRates {
    int threads_per_rank = 1;
    int measured_ranks = 1;  ///< ranks that ran at the same time
    FlopRate gemm_fp32;      ///< best large matrix product of one rank
    std::optional<FlopRate> gemm_bf16;
    double convolution_share = 0;  ///< convolution rate over gemm_fp32
    double attention_share = 0;
    Bandwidth memory;             ///< streaming, one rank, all ranks at once
    Seconds op_overhead;          ///< of a tiny kernel
    Bandwidth all_reduce_bus;     ///< bus bandwidth of a large all-reduce over measured_ranks; 0 when measured alone
    Seconds all_reduce_latency;   ///< of an 8-byte all-reduce
    double compute_slowdown = 0;  ///< share of compute speed lost while an all-reduce runs beside it
    std::string when;             ///< ISO time
    std::string how;              ///< "lockstep machine detect, 2 ranks, 1 thread each, 2.1 s"
};

/// Ranks that fit the cores this process may use, at least the measured ones; 1 when nothing was measured between
/// ranks.
int host_ranks(const HostStructure& structure, const HostRates& rates);

/// The host as a machine of `ranks` devices, one per rank, connected through memory. The peak of a device is the
/// measured rate of matrix products, so the efficiencies of its calibration are shares of that. Throws InputError when
/// `ranks` is above 1 and the rates were measured on one rank alone.
Machine make_host_machine(const HostStructure& structure, const HostRates& rates, int ranks);

/// Where rates are kept between runs ($XDG_CACHE_HOME or ~/.cache, lockstep/host-NAME.yaml), and reading and writing
/// them.
std::filesystem::path host_rates_file(const HostStructure& structure);
std::optional<HostRates> read_host_rates(const std::filesystem::path& file);
void write_host_rates(const HostRates& rates, const HostStructure& structure, const std::filesystem::path& file);

}  // namespace lockstep::machine
