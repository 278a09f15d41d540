// SPDX-License-Identifier: Apache-2.0
// Which fabric a node's NICs are on. NCCL finds the NICs itself; a fabric's settings are what it cannot find
// out.
#include "plugins/collective/fabric_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "plugins/collective/fabrics.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster::collective {
namespace {

/// Google's A3 Mega has eight NICs for its GPUs beside the host's, all of them gVNIC, and A3 High four.
/// Neither has RDMA devices (Google Cloud: GPU machine types).
constexpr int kFastrakNics = 9;

std::string textOf(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Active RDMA ports of one kind.
struct Ports {
  int count = 0;
  std::string first;
  std::set<std::string> drivers;

  void add(const Json& port) {
    if (++count == 1) first = textOf(port, "name") + " at " + textOf(port, "rate");
    if (const std::string driver = textOf(port, "driver"); !driver.empty()) drivers.insert(driver);
  }
  [[nodiscard]] std::string text(const char* kind) const {
    const std::string by = drivers.empty() ? "" : " (" + join({drivers.begin(), drivers.end()}, ", ") + ")";
    return fmt::format("{} {}{}, the first {}", count, kind, by, first);
  }
};

/// What a node has to reach others with.
struct Nics {
  int rdma = 0, active = 0;  ///< ports
  int gvnic = 0;             ///< interfaces that are up
  Ports efa, infiniband, ethernet;
  std::string cloud;

  explicit Nics(const Json& node) {
    const auto host = node.find("host");
    if (host != node.end()) cloud = textOf(*host, "cloud");
    const auto nics = node.find("nics");
    if (nics == node.end() || !nics->is_array()) return;
    for (const Json& nic : *nics) {
      if (textOf(nic, "kind") == "rdma")
        addPort(nic);
      else if (textOf(nic, "driver") == "gve" && textOf(nic, "state") == "up")
        ++gvnic;
    }
  }

  [[nodiscard]] std::string where() const { return cloud.empty() ? "no known cloud" : "cloud " + cloud; }

 private:
  void addPort(const Json& port) {
    ++rdma;
    if (textOf(port, "state") != "ACTIVE") return;
    ++active;
    const std::string layer = textOf(port, "link_layer");
    if (textOf(port, "driver") == "efa")
      efa.add(port);
    else if (layer == "InfiniBand")
      infiniband.add(port);
    else if (layer == "Ethernet")
      ethernet.add(port);
  }
};

/// Ethernet ports: clouds have fabrics of their own, and the generic settings are for NICs that route RoCE v2
/// as NVIDIA's and Broadcom's do.
FabricChoice chooseRoce(const Nics& nics) {
  const std::string found = "active RDMA ports: " + nics.ethernet.text("Ethernet") + "; " + nics.where();
  if (nics.cloud == "gcp") return {"gcp-gib", found, {}};
  if (nics.cloud == "oci") return {"oci-roce", found, {}};
  const bool isKnown = std::any_of(
      nics.ethernet.drivers.begin(), nics.ethernet.drivers.end(),
      [](const std::string& driver) { return driver == "mlx5_core" || driver.starts_with("bnxt_"); });
  if (nics.cloud.empty() && isKnown) return {"roce", found, {}};
  return {"none", found + ": no settings are published for these", {}};
}

FabricChoice chooseByNics(const Nics& nics) {
  if (nics.efa.count > 0) return {"aws-efa", "active RDMA ports: " + nics.efa.text("EFA"), {}};
  // The GPUs' NICs are the more numerous ones: the others are for storage and management.
  if (nics.infiniband.count > 0 && nics.infiniband.count >= nics.ethernet.count)
    return {nics.cloud == "azure" ? "azure-ib" : "ib",
            "active RDMA ports: " + nics.infiniband.text("InfiniBand") + "; " + nics.where(),
            {}};
  if (nics.ethernet.count > 0) return chooseRoce(nics);
  if (nics.active > 0) return {"none", "active RDMA ports of an unknown kind", {}};
  if (nics.rdma > 0) return {"none", fmt::format("{} RDMA ports, none active", nics.rdma), {}};
  if (nics.gvnic >= kFastrakNics)
    return {
        "gcp-fastrak", fmt::format("{} gVNIC interfaces (gve) that are up, no RDMA device", nics.gvnic), {}};
  return {"none", "no RDMA device; " + nics.where(), {}};
}

/// NAME=value lines of a file of NCCL's; one that is missing has none.
void addFile(const std::filesystem::path& path, Settings& out) {
  constexpr uint64_t kMostBytes = 64u << 10;
  const auto text = readFile(path, kMostBytes);
  if (!text.ok()) return;
  for (const std::string& line : split(*text, '\n'))
    if (const size_t equals = line.find('='); equals != std::string::npos && !line.starts_with('#'))
      out.emplace(line.substr(0, equals), path.string());
}

}  // namespace

FabricChoice chooseFabric(const Json& node) {
  FabricChoice choice = chooseByNics(Nics(node));
  // The names above are in the table, which a test holds.
  if (auto settings = fabricSettings(choice.name); settings.ok()) choice.settings = std::move(*settings);
  return choice;
}

Settings operatorSettings(const std::vector<std::string>& environment,
                          const std::filesystem::path& systemFile) {
  Settings found;
  std::string home, file;
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals), value = entry.substr(equals + 1);
    if (name == "HOME") home = value;
    if (name == "NCCL_CONF_FILE") file = value;
    found.emplace(name, "environment");
  }
  if (!file.empty())
    addFile(file, found);
  else if (!home.empty())
    addFile(std::filesystem::path(home) / ".nccl.conf", found);
  addFile(systemFile, found);
  return found;
}

void yieldTo(const Settings& operators, FabricChoice& choice) {
  std::vector<std::string> kept;
  for (const auto& [name, where] : operators)
    if (choice.settings.erase(name) > 0) kept.push_back(fmt::format("{} ({})", name, printable(where, 200)));
  if (!kept.empty()) choice.evidence += "; not overridden: " + join(kept, ", ");
}

std::string voteText(const FabricVote& vote) {
  return Json{vote.node, vote.fabric, vote.evidence}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

FabricVote voteFrom(const std::string& text) {
  const Json parts = Json::parse(text, nullptr, false);
  const auto part = [&](size_t i) {
    const bool there = parts.is_array() && i < parts.size() && parts[i].is_string();
    return there ? printable(parts[i].get<std::string>(), 300) : std::string();
  };
  const std::string fabric = part(1);
  return {part(0), isPlainName(fabric) ? fabric : "", part(2)};
}

Status checkSame(const std::vector<FabricVote>& votes) {
  constexpr size_t kMostNamed = 8;
  std::map<std::string, size_t> counts;
  for (const FabricVote& vote : votes) ++counts[vote.fabric];
  const auto fewer = [&](const FabricVote& a, const FabricVote& b) {
    return counts[a.fabric] < counts[b.fabric];
  };
  const auto most = std::max_element(votes.begin(), votes.end(), fewer);  // the first of equals
  // Of what a rank says only its number is certain.
  const auto said = [&](const FabricVote& vote) {
    return fmt::format("rank {} (on {}) say {} ({})", &vote - votes.data(), quoted(vote.node, 100),
                       vote.fabric.empty() ? "nothing" : vote.fabric, quoted(vote.evidence, 300));
  };
  std::vector<std::string> others;
  std::set<std::string> nodes;
  for (const FabricVote& vote : votes)
    if (vote.fabric != most->fabric && nodes.insert(vote.node).second && nodes.size() <= kMostNamed)
      others.push_back(said(vote));
  if (nodes.empty()) return {};
  if (nodes.size() > kMostNamed) others.push_back(fmt::format("{} more nodes", nodes.size() - kMostNamed));
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("of {} of {} ranks the NICs call for the same fabric: those of {}; those of {}; expected "
                  "the same on all nodes: compare the NICs of the nodes, or name the fabric in the plan",
                  counts[most->fabric], votes.size(), said(*most), join(others, "; those of ")),
      "params.fabric"};
}

Result<double> forcedLineRate(const std::vector<RdmaPort>& ports, int ranks) {
  std::vector<double> rates;
  for (const RdmaPort& port : ports)
    if (port.active() && (port.layer == "InfiniBand" || port.layer == "Ethernet") && port.driver != "efa")
      rates.push_back(port.bytesPerSecond);
  const auto count = static_cast<size_t>(ranks);
  if (ports.empty() || rates.size() < count)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("sending through the NICs needs an active InfiniBand or RoCE port for each of {} ranks "
                    "of a node; found {}",
                    ranks, ports.empty() ? "no RDMA device" : fmt::format("{}", rates.size())),
        "params.fabric"};
  std::sort(rates.begin(), rates.end(), std::greater<>());
  return rates[count - 1];
}

}  // namespace muster::collective
