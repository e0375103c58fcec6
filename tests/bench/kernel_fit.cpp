// SPDX-License-Identifier: Apache-2.0
// dipsim_fit: fits the kernel curves of the shipped GPUs, and their network curves where nccl.csv
// is there, to published tables and writes them into configs/gpus/NAME.json. Only groups that a fit
// can change are written (gemm…, attention…, memory; ring…, tree…, nvls…).
#include "sim/core/error.hpp"
#include "sim/core/files.hpp"
#include "validate/kernel_profiles.hpp"
#include "validate/nccl_fit.hpp"
#include "validate/nccl_rows.hpp"
#include "validate/published_data.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace dipsim;
using Json = nlohmann::ordered_json;

bool is_kernel(std::string_view group) {
  return group.starts_with("gemm") || group.starts_with("attention") || group == "memory";
}

bool is_network(std::string_view group) {
  return group.starts_with("ring") || group.starts_with("tree") || group.starts_with("nvls");
}

/// Evidence and source that most parameters of a group share.
std::pair<Evidence, std::string> common_source(const std::vector<NamedParameter>& group) {
  std::map<std::pair<Evidence, std::string>, int> count;
  for (const NamedParameter& p : group) {
    ++count[{p.parameter.evidence, p.parameter.source}];
  }
  return std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; })->first;
}

/// 3.0 as 3: numbers of people, not of programs.
Json number(double value) {
  const auto whole = static_cast<long long>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

Json group_json(const std::vector<NamedParameter>& group) {
  const auto [evidence, source] = common_source(group);
  Json out;
  out["evidence"] = name_of(evidence);
  out["source"] = source;
  for (const auto& [name, p] : group) {
    if (p.evidence == evidence && p.source == source) {
      out[name] = number(p.value);
    } else {
      out[name]["value"] = number(p.value);
      out[name]["evidence"] = name_of(p.evidence);
      out[name]["source"] = p.source;
    }
  }
  return out;
}

/// The groups of a profile that a fit can change, in file order.
std::vector<std::pair<std::string, Json>> fitted_groups(const Gpu& gpu) {
  std::vector<std::pair<std::string, std::vector<NamedParameter>>> groups;
  for (const NamedParameter& p : parameters(gpu.profile)) {
    const std::size_t dot = p.name.find('.');
    const std::string group = p.name.substr(0, dot);
    if (!is_kernel(group) && !is_network(group)) {
      continue;
    }
    if (groups.empty() || groups.back().first != group) {
      groups.emplace_back(group, std::vector<NamedParameter>());
    }
    groups.back().second.push_back({p.name.substr(dot + 1), p.parameter});
  }
  std::vector<std::pair<std::string, Json>> out;
  out.reserve(groups.size());
  for (const auto& [name, group] : groups) {
    out.emplace_back(name, group_json(group));
  }
  return out;
}

/// The text of a GPU file with its fitted groups replaced; kernels stand before all others.
std::string replaced(const std::string& text, const Gpu& gpu) {
  Json file = Json::parse(text);
  Json profile;
  std::map<std::string, Json> network;
  for (const auto& [name, group] : fitted_groups(gpu)) {
    (is_kernel(name) ? profile[name] : network[name]) = group;
  }
  for (const auto& [name, group] : file["profile"].items()) {
    if (!is_kernel(name)) {
      profile[name] = network.contains(name) ? network.at(name) : group;
    }
  }
  file["profile"] = profile;
  return file.dump(2) + "\n";
}

void fit(const std::string& tables_folder, const std::string& gpus_folder) {
  const auto tables = kernel_tables(PublishedData(tables_folder));
  if (!tables) {
    fail_input(tables_folder,
               "lacks a table of kernels: gemm.csv, attention_cudnn.csv, attention.csv, "
               "norm_layers.csv or memory_bandwidth.csv");
  }
  const std::optional<CsvTable> nccl = PublishedData(tables_folder).table("nccl");
  for (const Gpu& kernels : refitted_gpus(*tables)) {
    const Gpu gpu = nccl ? with_fitted_network(kernels, read_nccl_rows(*nccl).rows) : kernels;
    const std::filesystem::path path = std::filesystem::path(gpus_folder) / (gpu.name + ".json");
    const std::string before = read_file(path);
    const std::string after = replaced(before, gpu);
    if (after != before) {
      write_file(path, after);
    }
    fmt::print("{}: {}\n", path.string(), after == before ? "as it was" : "written");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Fits the kernel curves of the shipped GPUs to published tables.");
    std::string tables;
    std::string gpus = "configs/gpus";
    app.add_option("TABLES", tables, "folder of the published tables (gemm.csv, …)")->required();
    app.add_option("--gpus", gpus, "folder of the GPU files to rewrite")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    fit(tables, gpus);
    return 0;
  } catch (const std::exception& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
    return 1;
  }
}
