// What an experiment turns on a described machine: peer-to-peer, NICs, NCCL's choices, power, rates of links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "machine/machine.hpp"

namespace lockstep::machine {

struct Knobs {
    std::optional<bool> peer_to_peer;  ///< false: as NCCL_P2P_DISABLE=1, all traffic between GPUs by host memory
    std::optional<int> nics_per_node;
    std::optional<CollectiveAlgorithm> algorithm;  ///< none: the fastest
    std::optional<CollectiveProtocol> protocol;
    std::optional<Watts> power_cap;                      ///< of each GPU
    std::optional<Bandwidth> nvlink, pcie, socket, nic;  ///< of one link, one direction

    /// Keys that are set, as an experiment writes them: "power_cap", "link_rates.nvlink".
    std::vector<std::string> names() const;
};

/// Reads {peer_to_peer, nics_per_node, nccl_algo: ring|tree|nvls|auto, nccl_proto: ll|ll128|simple|auto, power_cap,
/// link_rates: {nvlink, pcie, socket, network}}. All errors go to `diagnostics`: rates, NICs and caps must be above 0.
Knobs read_knobs(const config::Node& node, config::Diagnostics& diagnostics);

/// `machine` with the knobs turned:
///   - without peer-to-peer no NVLink carries anything and every route goes by host memory;
///   - of its NICs the first nics_per_node are left;
///   - a power cap lowers the compute clock (clock_under_cap) and leaves the memory's;
///   - a rate is that of one healthy link; links that faults slow keep their share of it.
/// Throws InputError for what makes no sense on it: on a CPU host all but link rates; more NICs than a node has, or
/// NICs without a network; a cap above the device's power, below the least share, or of a device whose power isn't
/// known; a rate of links it hasn't; nvls where switches don't add up; ll and ll128 where NCCL doesn't offer them.
Machine apply_knobs(Machine machine, const Knobs& knobs);

/// Share of a device's power that doesn't fall with the clock: idle A100-SXM4 draw about 60 of 400 W at their lowest
/// clock (nvidia-smi logs), memory refresh and leakage included.
inline constexpr double idle_power_share = 0.15;
/// Caps below this share of the power are refused: drivers allow 100 of 400 W (A100-SXM4) and 200 of 700 W (H100-SXM5).
inline constexpr double least_cap_share = 0.25;

/// Compute clock under a cap over the one at full power P: dynamic power goes as f V^2, and V as f in the range that
/// voltage and frequency scale together, so cap = i P + (1 - i) P r^3 with idle share i:
///     r = ((cap / P - i) / (1 - i))^(1/3)
/// Published figures to hold it against: the best bf16 product of an A100 PCIe (300 W) is 0.93 of an A100 SXM's (400 W;
/// stas00/ml-engineering), r = 0.89; an H100 at 600 of 700 W loses 10 to 15 % of a step (factryze.ai, power capping),
/// r = 0.94; an RTX 3090 at 275 of 366 W 5 % (babel.cs.cmu.edu wiki), r = 0.89: kernels differ in how near they run.
double clock_under_cap(Watts cap, Watts power);

/// Whether the switches of a node add up what GPUs send (NVLink SHARP: third-generation NVSwitches, compute capability
/// 9.0 on).
bool has_in_switch_reduction(const Device& device, const Topology& topology);

}  // namespace lockstep::machine
