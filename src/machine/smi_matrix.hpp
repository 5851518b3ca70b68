// The proximity matrix of a node as `nvidia-smi topo -m` prints it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/topology.hpp"

namespace lockstep::machine {

/// " X ", "NV#", "PIX", "PXB", "PHB", "NODE", "SYS".
std::string_view to_string(Proximity proximity);

/// One cell: as to_string(Proximity), with the number of NVLinks: "NV12".
std::string smi_cell(const Topology& topology, VertexId from, VertexId to);

/// Rows and columns of the matrix: the GPUs, then the NICs.
std::vector<VertexId> smi_devices(const Topology& topology);

/// Columns and rows GPU0.. and NIC0.., separated by tabs as nvidia-smi does, cells X, NV#, PIX, PXB, PHB, NODE, SYS;
/// then the legend. The column "CPU Affinity" is left out: a machine file doesn't number its cores.
std::string format_smi_matrix(const Topology& topology);

}  // namespace lockstep::machine
