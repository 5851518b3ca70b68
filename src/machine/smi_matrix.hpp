// The proximity matrix of a node as `nvidia-smi topo -m` prints it.
#pragma once

#include <string>

#include "machine/topology.hpp"

namespace lockstep::machine {

/// Columns and rows GPU0.. and NIC0.., cells X, NV#, PIX, PXB, PHB, NODE, SYS; then the legend.
std::string format_smi_matrix(const Topology& topology);

}  // namespace lockstep::machine
