// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/node_topology.hpp"
#include "sim/cluster/xml.hpp"
#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "sim/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace dipsim {

namespace {

constexpr double kMegabitsPerGigabyte = 8e3;
constexpr double kBetweenHosts = 10.0;         // GB/s: NCCL src/graph/topo.h, SKL_QPI_BW
constexpr double kAssumedGigatransfers = 8.0;  // NCCL's fallback: PCIe 3 …
constexpr int kAssumedLanes = 16;              // … with 16 lanes
constexpr std::string_view kNvSwitchClass = "0x0680";

/// GB/s of one NVLink, one way, by compute capability: data sheets (P100 4 × 20, V100 6 × 25, A100
/// 12 × 25, A40 4 × 14, H100 18 × 25, B200 18 × 50).
double nvlink_speed(int sm) {
  if (sm >= 100) {
    return 50.0;
  }
  if (sm == 86 || sm == 89) {
    return 14.0;
  }
  return sm < 70 ? 20.0 : 25.0;
}

/// A device on the PCIe tree and the way down to it: rows of the host and the switches above it.
struct OnPcie {
  int device = 0;
  std::vector<int> above;
};

struct FoundGpu {
  OnPcie place;
  int sm = 0;
  std::string bus;
  const XmlElement* element = nullptr;
};

struct FoundCard {
  OnPcie place;
  double gbytes_per_s = 0.0;
};

int common_depth(const OnPcie& a, const OnPcie& b) {
  const auto parted = std::ranges::mismatch(a.above, b.above);
  return static_cast<int>(parted.in1 - a.above.begin());
}

/// Walks the file once and connects what it finds.
class NcclTopologyReader {
 public:
  explicit NcclTopologyReader(const std::string& file) : file_(file) {}

  NodeTopology read(const XmlElement& system) {
    if (system.name != "system") {
      fail(system, fmt::format("<{}> is no topology of NCCL; its root is <system>", system.name));
    }
    for (const XmlElement& cpu : system.children) {
      require(cpu, {"cpu"});
      read_host(cpu);
    }
    if (gpus_.empty()) {
      fail(system, "holds no GPU");
    }
    connect_nvlinks();
    out_.gpus = static_cast<int>(gpus_.size());
    out_.nic_gbytes_per_s = card_share();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const XmlElement& at, const std::string& message) const {
    fail_input(fmt::format("{}:{}:{}", file_, at.line, at.column), message);
  }

  void require(const XmlElement& element, std::vector<std::string_view> known) const {
    if (std::ranges::find(known, element.name) == known.end()) {
      fail(element, unknown_name("element", element.name, known));
    }
  }

  const std::string& text(const XmlElement& element, std::string_view key) const {
    const std::string* const found = element.find(key);
    if (found == nullptr) {
      fail(element, fmt::format("<{}> has no \"{}\"", element.name, key));
    }
    return *found;
  }

  double number(const XmlElement& element, std::string_view key, double low, double high) const {
    const std::string& digits = text(element, key);
    double value = 0.0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() ||
        !(low <= value && value <= high)) {
      fail(element, fmt::format("\"{}\" = \"{}\" is no number from {} to {}", key,
                                shortened(digits), shortest(low), shortest(high)));
    }
    return value;
  }

  void read_host(const XmlElement& cpu) {
    const int host = out_.graph.add({.kind = DeviceKind::Host, .node = 0, .index = hosts_++});
    if (last_host_ >= 0) {
      out_.graph.connect(last_host_, host, kBetweenHosts);
    }
    last_host_ = host;
    read_children(cpu, {host});
  }

  void read_children(const XmlElement& parent, const std::vector<int>& above) {
    for (const XmlElement& child : parent.children) {
      require(child, {"pci", "nic"});
      if (child.name == "pci") {
        read_pci(child, above);
      } else {
        read_cards(child, above, assumed_pcie());
      }
    }
  }

  static double assumed_pcie() { return pcie_speed(kAssumedGigatransfers, kAssumedLanes); }

  /// 128 of 130 bits carry data from PCIe 3 on, 8 of 10 before.
  static double pcie_speed(double gigatransfers, int lanes) {
    return gigatransfers * lanes / 8.0 * (gigatransfers < 8.0 ? 0.8 : 128.0 / 130.0);
  }

  /// "32.0 GT/s PCIe" and "16".
  double link_speed(const XmlElement& pci) const {
    const std::string* const speed = pci.find("link_speed");
    double gigatransfers = 0.0;
    if (speed != nullptr) {
      std::from_chars(speed->data(), speed->data() + speed->size(), gigatransfers);
    }
    const auto lanes = pci.find("link_width") == nullptr
                           ? 0
                           : static_cast<int>(number(pci, "link_width", 0.0, 255.0));
    return pcie_speed(gigatransfers > 0.0 ? gigatransfers : kAssumedGigatransfers,
                      lanes > 0 ? lanes : kAssumedLanes);
  }

  /// A switch with what hangs off it, or a device.
  void read_pci(const XmlElement& pci, const std::vector<int>& above) {
    const double speed = link_speed(pci);
    for (const XmlElement& child : pci.children) {
      require(child, {"pci", "gpu", "nic"});
      if (child.name == "gpu") {
        read_gpu(child, text(pci, "busid"), above, speed);
      } else if (child.name == "nic") {
        read_cards(child, above, speed);
      }
    }
    if (std::ranges::any_of(pci.children, [](const auto& c) { return c.name == "pci"; })) {
      const int row =
          out_.graph.add({.kind = DeviceKind::PcieSwitch, .node = 0, .index = switches_++});
      out_.graph.connect(above.back(), row, speed);
      std::vector<int> below = above;
      below.push_back(row);
      for (const XmlElement& child : pci.children) {
        if (child.name == "pci") {
          read_pci(child, below);
        }
      }
    }
  }

  void read_gpu(const XmlElement& gpu, const std::string& bus, const std::vector<int>& above,
                double speed) {
    const int row = out_.graph.add(
        {.kind = DeviceKind::Gpu, .node = 0, .index = static_cast<int>(gpus_.size())});
    out_.graph.connect(above.back(), row, speed);
    const auto same =
        std::ranges::find(gpus_, bus, [](const FoundGpu& found) { return found.bus; });
    if (same != gpus_.end()) {
      fail(gpu, fmt::format("a second GPU at bus id \"{}\"", bus));
    }
    gpus_.push_back({.place = {row, above},
                     .sm = static_cast<int>(number(gpu, "sm", 10.0, 1e4)),
                     .bus = bus,
                     .element = &gpu});
  }

  void read_cards(const XmlElement& nic, const std::vector<int>& above, double speed) {
    double total = 0.0;
    for (const XmlElement& net : nic.children) {
      require(net, {"net"});
      total += number(net, "speed", 1.0, 1e8) / kMegabitsPerGigabyte;
    }
    if (total > 0.0) {
      const int row = out_.graph.add(
          {.kind = DeviceKind::Nic, .node = 0, .index = static_cast<int>(cards_.size())});
      out_.graph.connect(above.back(), row, speed);
      cards_.push_back({.place = {row, above}, .gbytes_per_s = total});
    }
  }

  void connect_nvlinks() {
    double fewest = std::numeric_limits<double>::infinity();
    for (const FoundGpu& gpu : gpus_) {
      double total = 0.0;
      for (const XmlElement& link : gpu.element->children) {
        require(link, {"nvlink", "c2c"});
        if (link.name == "nvlink") {
          total += connect(gpu, link);
        }
      }
      if (to_switch_[gpu.place.device] > 0.0) {
        out_.graph.connect(gpu.place.device, nvswitch(), to_switch_[gpu.place.device]);
      }
      fewest = std::min(fewest, total);
    }
    out_.nvlink_gbytes_per_s = fewest;
  }

  /// Returns the speed of these links together.
  double connect(const FoundGpu& gpu, const XmlElement& link) {
    const double speed = number(link, "count", 1.0, 64.0) * nvlink_speed(gpu.sm);
    const std::string& target = text(link, "target");
    const auto peer =
        std::ranges::find(gpus_, target, [](const FoundGpu& found) { return found.bus; });
    if (peer != gpus_.end()) {
      if (gpu.place.device < peer->place.device) {
        out_.graph.connect(gpu.place.device, peer->place.device, speed);
      }
    } else if (const std::string* kind = link.find("tclass");
               kind != nullptr && kind->starts_with(kNvSwitchClass)) {
      to_switch_[gpu.place.device] += speed;
    } else {
      fail(link, fmt::format("leads to \"{}\", where there is neither a GPU nor a switch (tclass "
                             "{}00)",
                             target, kNvSwitchClass));
    }
    return speed;
  }

  /// The switches of a node as one: every GPU is linked to all of them alike.
  int nvswitch() {
    if (nvswitch_ < 0) {
      nvswitch_ = out_.graph.add({.kind = DeviceKind::NvSwitch, .node = 0});
    }
    return nvswitch_;
  }

  /// The smallest share of cards that a GPU has: every card is split among the GPUs next to it.
  double card_share() const {
    std::vector<double> share(gpus_.size(), 0.0);
    for (const FoundCard& card : cards_) {
      std::vector<int> depths;
      for (const FoundGpu& gpu : gpus_) {
        depths.push_back(common_depth(gpu.place, card.place));
      }
      const int deepest = *std::ranges::max_element(depths);
      const auto served = std::ranges::count(depths, deepest);
      for (std::size_t i = 0; i < gpus_.size(); ++i) {
        share[i] += depths[i] == deepest ? card.gbytes_per_s / static_cast<double>(served) : 0.0;
      }
    }
    return *std::ranges::min_element(share);
  }

  const std::string& file_;
  NodeTopology out_;
  std::vector<FoundGpu> gpus_;
  std::vector<FoundCard> cards_;
  std::map<int, double> to_switch_;
  int hosts_ = 0;
  int switches_ = 0;
  int last_host_ = -1;
  int nvswitch_ = -1;
};

}  // namespace

NodeTopology read_nccl_topology(std::string_view text, const std::string& file) {
  const XmlElement system = parse_xml(text, file);
  return NcclTopologyReader(file).read(system);
}

NodeTopology load_node_topology(const std::filesystem::path& path, const LinkSpeeds& speeds) {
  const std::string text = read_file(path);
  return text.starts_with('<') ? read_nccl_topology(text, path.string())
                               : read_smi_topology(text, path.string(), speeds);
}

}  // namespace dipsim
