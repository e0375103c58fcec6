// SPDX-License-Identifier: Apache-2.0
// What a real node says about its links: NCCL's topology file, or the matrix of nvidia-smi.
#pragma once

#include "sim/cluster/topology.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace dipsim {

/// One node as it was found.
struct NodeTopology {
  Topology graph;  ///< of this node only; links to the outside end at its cards
  int gpus = 0;
  double nvlink_gbytes_per_s = 0.0;  ///< of the GPU with the fewest links, one way; 0: no NVLink
  double nic_gbytes_per_s = 0.0;     ///< of the GPU with the smallest share; 0: not told
};

/// Speeds that the matrix of nvidia-smi does not print.
struct LinkSpeeds {
  double nvlink_gbytes_per_s = 25.0;  ///< of one NVLink, one way: 25 from V100 to H200, 50 on B200
  double pcie_gbytes_per_s = 32.0;
};

/// The XML that NCCL writes to $NCCL_TOPO_DUMP_FILE. Speeds come from the file: cards by their
/// "speed" (Mbit/s), PCIe by link_speed and link_width (8 GT/s × 16 where a virtual machine hides
/// them, as NCCL assumes), NVLink by the compute capability "sm". A card serves the GPUs that it is
/// nearest to, in equal shares. Throws Input, naming file, line and column: what parse_xml()
/// refuses, unknown elements, missing or nonsensical attributes, NVLinks to nowhere, no GPU.
NodeTopology read_nccl_topology(std::string_view text, const std::string& file);

/// The matrix that `nvidia-smi topo -m` prints, with or without the legends below it. More NVLinks
/// to all others than a GPU has (18) means an NVSwitch. Throws Input, naming file, line and column:
/// no matrix, unknown cells, rows that are short, missing or cut off, a matrix that is not
/// symmetric.
NodeTopology read_smi_topology(std::string_view text, const std::string& file,
                               const LinkSpeeds& speeds);

/// Either of the two: a file whose first character is "<" is NCCL's.
NodeTopology load_node_topology(const std::filesystem::path& path, const LinkSpeeds& speeds);

}  // namespace dipsim
