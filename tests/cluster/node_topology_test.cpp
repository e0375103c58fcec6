// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/node_topology.hpp"

#include "sim/cluster/xml.hpp"
#include "sim/core/files.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace dipsim;
using test::contains;
using test::replaced;

GpuId gpu(int number) { return GpuId(number); }

/// Two GPUs behind one switch with one 400 Gb/s card, and a third one on the other host with its
/// own: as NCCL writes it, shortened. %LINKS is below every GPU.
std::string nccl_file(std::string_view links) {
  std::string text = R"(<system version="1">
  <!-- written by NCCL -->
  <cpu numaid="0" affinity="ffff" arch="x86_64">
    <pci busid="0000:01:00.0" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">%LINKS</gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="90" rank="1" gdr="1">%LINKS</gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000" arch="x86_64">
    <pci busid="0000:81:00.0" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:82:00.0" class="0x030200" link_speed="" link_width="0">
        <gpu dev="2" sm="90" rank="2" gdr="1">%LINKS</gpu>
      </pci>
      <pci busid="0000:83:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_1" dev="1" speed="400000" port="1" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>
)";
  for (std::size_t at = text.find("%LINKS"); at != std::string::npos; at = text.find("%LINKS")) {
    text.replace(at, 6, links);
  }
  return text;
}

const std::string kSwitched = R"(<nvlink target="0000:d0:00.0" count="9" tclass="0x068000"/>)"
                              R"(<nvlink target="0000:d1:00.0" count="9" tclass="0x068000"/>)";

std::string refusal(const std::string& text) {
  const Error error = test::error_of([&] {
    text.starts_with('<') ? read_nccl_topology(text, "node.xml")
                          : read_smi_topology(text, "node.txt", {});
  });
  CHECK(error.kind() == ErrorKind::Input);
  return error.what();
}

DeviceKind kind_on(const Topology& graph, int link, int end) {
  const Link& found = graph.links()[static_cast<std::size_t>(link)];
  return graph.devices()[static_cast<std::size_t>(end == 0 ? found.a : found.b)].kind;
}

const std::string kMatrix =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV4\tNV4\tSYS\tPIX\t0-47\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tNV2\tSYS\tNODE\t0-47\t0\t\tN/A\n"
    "GPU2\tNV4\tNV2\t X \tNV2\tSYS\t48-95\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tNV2\t X \tSYS\t48-95\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n";

/// All eight GPUs linked to each other by the same number of links.
std::string even_matrix(int gpus, int links) {
  std::string text;
  for (int i = 0; i < gpus; ++i) {
    text += "\tGPU" + std::to_string(i);
  }
  text += "\tCPU Affinity\n";
  for (int i = 0; i < gpus; ++i) {
    text += "GPU" + std::to_string(i);
    for (int j = 0; j < gpus; ++j) {
      text += i == j ? "\t X " : "\tNV" + std::to_string(links);
    }
    text += "\t0-63\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a topology file of NCCL tells NVLink, cards and their shares") {
  const NodeTopology node = read_nccl_topology(nccl_file(kSwitched), "node.xml");
  CHECK(node.gpus == 3);
  CHECK(node.nvlink_gbytes_per_s == 18 * 25.0);
  CHECK(node.nic_gbytes_per_s == 25.0);  // GPUs 0 and 1 share a card of 50
  const std::vector<int> way = node.graph.route(gpu(0), gpu(2));
  REQUIRE(way.size() == 2);
  CHECK(kind_on(node.graph, way[0], 1) == DeviceKind::NvSwitch);
}

TEST_CASE("without NVLink the GPUs of a file meet at their PCIe switch or cross the hosts") {
  const NodeTopology node = read_nccl_topology(nccl_file(""), "node.xml");
  CHECK(node.nvlink_gbytes_per_s == 0.0);
  CHECK(node.graph.route(gpu(0), gpu(1)).size() == 2);
  CHECK(node.graph.bottleneck_gbytes_per_s(gpu(0), gpu(1)) ==
        doctest::Approx(32.0 * 16 / 8 * 128 / 130));
  CHECK(node.graph.route(gpu(0), gpu(2)).size() == 5);
  CHECK(node.graph.bottleneck_gbytes_per_s(gpu(0), gpu(2)) == 10.0);
}

TEST_CASE("NVLinks from GPU to GPU join just these, and the GPU with the fewest counts") {
  std::string text = nccl_file("%");
  text = replaced(text, "%", R"(<nvlink target="0000:03:00.0" count="4" tclass="0x030200"/>)");
  text = replaced(text, "%",
                  R"(<nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>)"
                  R"(<nvlink target="0000:82:00.0" count="2" tclass="0x030200"/>)");
  text = replaced(text, "%", R"(<nvlink target="0000:03:00.0" count="2" tclass="0x030200"/>)");
  const NodeTopology node = read_nccl_topology(text, "node.xml");
  CHECK(node.nvlink_gbytes_per_s == 50.0);
  CHECK(node.graph.bottleneck_gbytes_per_s(gpu(0), gpu(1)) == 100.0);
  CHECK(node.graph.bottleneck_gbytes_per_s(gpu(0), gpu(2)) == 50.0);
}

TEST_CASE("a broken topology file is refused with line and column") {
  const std::string good = nccl_file(kSwitched);
  CHECK(contains(refusal("<other/>"), "node.xml:1:1"));
  CHECK(contains(refusal(R"(<system version="1"/>)"), "holds no GPU"));
  CHECK(contains(refusal(replaced(good, "<gpu dev=\"1\"", "<gpo dev=\"1\"")), "node.xml:"));
  CHECK(contains(refusal(replaced(good, "sm=\"90\"", "sm=\"ninety\"")),
                 "node.xml:6:9: \"sm\" = \"ninety\" is no number"));
  CHECK(contains(refusal(replaced(good, "sm=\"90\"", "em=\"90\"")), "has no \"sm\""));
  CHECK(contains(refusal(replaced(good, "speed=\"400000\"", "speed=\"-1\"")), "node.xml:12:14"));
  CHECK(contains(refusal(replaced(good, "count=\"9\"", "count=\"0\"")), "\"count\" = \"0\""));
  CHECK(contains(refusal(replaced(good, "0x068000", "0x030200")),
                 "leads to \"0000:d0:00.0\", where there is neither"));
  CHECK(contains(refusal(replaced(good, "0000:03:00.0", "0000:02:00.0")), "a second GPU"));
}

TEST_CASE("a topology file cut off anywhere is refused, never half read") {
  const std::string good = nccl_file(kSwitched);
  const std::size_t end = good.find_last_of('>');
  for (std::size_t size = 1; size <= end; size += 7) {
    const std::string message = refusal(good.substr(0, size));
    CHECK(contains(message, "node.xml:"));
  }
}

TEST_CASE("XML with text, wrong nesting, repeated attributes or a second root is refused") {
  const auto message = [](const std::string& text) {
    return std::string(test::error_of([&] { parse_xml(text, "x"); }).what());
  };
  CHECK(contains(message(""), "x:1:1: no element"));
  CHECK(contains(message("<a>text</a>"), "x:1:4: text between elements"));
  CHECK(contains(message("<a>\n <b>\n </a>\n</b>"), "x:3:2: </a> closes <b> of line 2"));
  CHECK(contains(message("<a b='1' b='2'/>"), "x:1:10: attribute \"b\" a second time"));
  CHECK(contains(message("<a/><b/>"), "x:1:5: something follows"));
  CHECK(contains(message("<a b=1/>"), "x:1:6"));
  CHECK(contains(message("<a b='&x;'/>"), "x:1:7: unknown entity"));
  CHECK(contains(message("<!DOCTYPE a><a/>"), "x:1:2"));
  CHECK(contains(message("<a b='1"), "never closed"));
  std::string deep;
  for (int i = 0; i < 100; ++i) {
    deep += "<a>";
  }
  CHECK(contains(message(deep), "nested deeper"));
}

TEST_CASE("XML keeps attributes and places, and resolves entities") {
  const XmlElement root =
      parse_xml("<?xml version='1.0'?>\n<a b=\"x &lt; y\">\n  <c/> <c d='e'></c></a>\n", "x");
  CHECK(root.name == "a");
  REQUIRE(root.find("b") != nullptr);
  CHECK(*root.find("b") == "x < y");
  CHECK(root.find("z") == nullptr);
  REQUIRE(root.children.size() == 2);
  CHECK(root.children[1].line == 3);
  CHECK(root.children[1].column == 8);
}

TEST_CASE("a matrix of nvidia-smi joins GPUs by their NVLinks and the rest over PCIe") {
  const NodeTopology node = read_smi_topology(
      kMatrix, "node.txt", {.nvlink_gbytes_per_s = 25.0, .pcie_gbytes_per_s = 32.0});
  CHECK(node.gpus == 4);
  CHECK(node.nvlink_gbytes_per_s == 50.0);  // GPU3 has two
  CHECK(node.nic_gbytes_per_s == 0.0);
  CHECK(node.graph.bottleneck_gbytes_per_s(gpu(0), gpu(1)) == 100.0);
  CHECK(node.graph.bottleneck_gbytes_per_s(gpu(1), gpu(2)) == 50.0);
  // GPU0 reaches GPU3 through GPU2: faster than between the hosts.
  CHECK(node.graph.route(gpu(0), gpu(3)).size() == 2);
}

TEST_CASE("as many NVLinks to everybody as a GPU has in all mean a switch") {
  for (const int links : {12, 18}) {
    const NodeTopology node = read_smi_topology(even_matrix(8, links), "node.txt", {});
    CHECK(node.nvlink_gbytes_per_s == links * 25.0);
    CHECK(node.graph.route(gpu(0), gpu(7)).size() == 2);
  }
  const NodeTopology mesh = read_smi_topology(even_matrix(4, 4), "node.txt", {});
  CHECK(mesh.nvlink_gbytes_per_s == 12 * 25.0);
  CHECK(mesh.graph.route(gpu(0), gpu(3)).size() == 1);
}

TEST_CASE("a broken matrix is refused with line and column") {
  CHECK(contains(refusal("nothing\n"), "node.txt:1:1: no header line"));
  CHECK(contains(refusal(""), "no header line"));
  CHECK(contains(refusal(replaced(kMatrix, "GPU1\tNV4", "GPU1\tNVX")),
                 "node.txt:3:6: unknown relation \"NVX\""));
  CHECK(contains(refusal(replaced(kMatrix, "GPU1\tNV4", "GPU1\tNV99")), "unknown relation"));
  CHECK(contains(refusal(replaced(kMatrix, "GPU1\tNV4", "GPU1\tNV2")),
                 "node.txt:3:1: GPU1 and GPU0 differ"));
  CHECK(contains(refusal(replaced(kMatrix, "GPU1\tNV4", "GPU7\tNV4")), "the row of GPU1"));
  CHECK(contains(refusal(replaced(kMatrix, "GPU0\t X ", "GPU0\tPIX")), "diagonal"));
  CHECK(contains(refusal(replaced(kMatrix, "\tGPU3\tNIC0\tCPU", "\tGPU2\tNIC0\tCPU")),
                 "two columns \"GPU2\""));
}

TEST_CASE("a matrix cut off before its last GPU is refused") {
  const std::size_t end = kMatrix.find("\t48-95\t1\t\tN/A\nNIC0") - 4;
  for (std::size_t size = 0; size < end; size += 3) {
    CHECK(contains(refusal(kMatrix.substr(0, size)), "node.txt:"));
  }
}

TEST_CASE("a topology is read from a file of either kind") {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "a.xml", nccl_file(kSwitched));
  write_file(folder.path() / "b.txt", kMatrix);
  CHECK(load_node_topology(folder.path() / "a.xml", {}).gpus == 3);
  CHECK(load_node_topology(folder.path() / "b.txt", {}).gpus == 4);
}
