// SPDX-License-Identifier: Apache-2.0
// Determines the part that one deviation speaks against.
#include "reports/fleet/blame/culprit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "reports/fleet/blame/findings.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"

namespace muster::fleet {
namespace {

/// Between the two nodes of a link.
constexpr std::string_view kEnds = " - ";

/// The label's value in "a=n1 b=n2 rail=3", or an empty text.
std::string labelIn(const std::string& labels, const std::string& name) {
  for (const std::string& part : split(labels, ' '))
    if (part.rfind(name + "=", 0) == 0) return part.substr(name.size() + 1);
  return "";
}

/// `text` behind `before`, or an empty text.
std::string behind(const std::string& text, const std::string& before) {
  return text.rfind(before, 0) == 0 ? text.substr(before.size()) : "";
}

/// What stands between "culprit=" and " kind=".
std::string culpritIn(const std::string& labels) {
  const size_t begin = labels.find("culprit=");
  const size_t end = labels.rfind(" kind=");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return labels.substr(begin + 8, end - begin - 8);
}

/// What a test says itself: "culprit=link n2 - n3, rail 1 kind=link". False where it says nothing of the
/// kind.
bool readCulprit(const std::string& labels, Suspect& suspect) {
  const std::string culprit = culpritIn(labels);
  if (culprit.empty()) return false;
  const std::string kind = labelIn(labels.substr(labels.rfind(" kind=")), "kind");
  const std::string node = behind(culprit, "node ");
  if (kind == "link") {
    suspect.kind = SuspectKind::kLink;
    suspect.what = behind(culprit, "link ");
  } else if (kind == "node") {
    suspect.kind = SuspectKind::kNode;
    suspect.node = node;
  } else if (kind == "node-rail") {
    suspect.kind = SuspectKind::kRail;
    suspect.node = node.substr(0, node.find(", "));
    suspect.what = node.substr(std::min(node.size(), suspect.node.size() + 2));
  } else if (kind == "rail") {
    suspect.kind = SuspectKind::kRail;
    suspect.what = culprit;
  } else if (kind == "leaf-uplink") {
    suspect.kind = SuspectKind::kSwitch;
    suspect.what = behind(culprit, "uplink of ");
  } else if (kind == "unattributable") {
    suspect.kind = SuspectKind::kGroup;
    suspect.what = culprit;
  } else {
    return false;
  }
  return !suspect.what.empty() || !suspect.node.empty();
}

}  // namespace

std::string serialOf(const NodeSummary* record, const std::string& device) {
  if (record == nullptr) return "";
  for (const DeviceIdentity& known : record->devices)
    if (known.id == device) return known.serial.empty() ? known.uuid : known.serial;
  return "";
}

Suspect culpritOf(const DeviationSummary& d, const NodeSummary& record) {
  Suspect suspect;
  suspect.located = true;
  if (readCulprit(d.labels, suspect)) return suspect;
  suspect.node = record.node;
  const std::string peer = labelIn(d.labels, "peer");
  const std::string a = labelIn(d.labels, "a");
  const std::string b = labelIn(d.labels, "b");
  if (!a.empty() && !b.empty()) {
    suspect.kind = SuspectKind::kLink;
    suspect.what = a + "-" + b;
  } else if (!peer.empty() && !d.device.empty()) {
    suspect.kind = SuspectKind::kLink;
    suspect.what = std::min(d.device, peer) + "-" + std::max(d.device, peer);
  } else {
    return ownPart(d, record);
  }
  return suspect;
}

std::string labelOf(const DeviationSummary& d, const std::string& name) {
  return labelIn(d.labels, name);
}

int nodeNumber(const std::string& peer) {
  int number = -1;
  const auto [end, error] = std::from_chars(peer.data(), peer.data() + peer.size(), number);
  return error == std::errc() && end == peer.data() + peer.size() && number >= 0 ? number : -1;
}

int peerNode(const DeviationSummary& d) {
  if (const int peer = nodeNumber(labelIn(d.labels, "peer")); peer >= 0) return peer;
  // What kept a pair from being measured has no figure with labels (plugins/rdma/perftest.cpp).
  std::string_view text = d.detail;
  if (text.starts_with(d.device + ": ")) text.remove_prefix(d.device.size() + 2);
  constexpr std::string_view kWith = "with node ";
  if (d.outcome != Outcome::kError || !text.starts_with(kWith)) return -1;
  text.remove_prefix(kWith.size());
  return nodeNumber(std::string(text.substr(0, text.find(": "))));
}

Suspect ownPart(const DeviationSummary& d, const NodeSummary& record) {
  Suspect suspect;
  suspect.node = record.node;
  // The device that reports a port is only the one whose rank measured it.
  if (suspect.what = labelIn(d.labels, "port"); !suspect.what.empty()) {
    suspect.kind = SuspectKind::kRail;
    return suspect;
  }
  suspect.kind = d.device.empty() ? SuspectKind::kNode : SuspectKind::kDevice;
  suspect.what = d.device;
  suspect.serial = d.device.empty() ? "" : serialOf(&record, d.device);
  return suspect;
}

std::vector<std::string> labelledNodes(const DeviationSummary& d) {
  Suspect suspect;
  std::vector<std::string> names;
  if (readCulprit(d.labels, suspect)) names = nodesOf(suspect);
  for (const char* end : {"a", "b"}) names.push_back(labelIn(d.labels, end));
  return names;
}

std::vector<Suspect> takeWholeNode(std::vector<const DeviationSummary*>& failures, const FleetNode& node,
                                   const FleetNames& names) {
  using Key = std::tuple<std::string, std::string, Outcome>;  // stage, metric: by text, for the order
  const auto keyOf = [&](const DeviationSummary& d) {
    return Key{names.texts[d.stage], names.texts[d.metric], d.outcome};
  };
  const auto isOfDevice = [](const DeviationSummary& d) {
    return !d.device.empty() && labelIn(d.labels, "kind").empty() && labelIn(d.labels, "peer").empty();
  };
  std::map<Key, std::set<std::string>> devices;
  for (const DeviationSummary* d : failures)
    if (isOfDevice(*d)) devices[keyOf(*d)].insert(d->device);
  std::erase_if(devices, [&](const auto& entry) {
    return entry.second.size() < kWholeNode || 2 * entry.second.size() <= node.devices;
  });
  std::vector<Suspect> found;
  for (const auto& [key, which] : devices) {
    // They stand with the worst first.
    const DeviationSummary& worst =
        **std::find_if(failures.begin(), failures.end(),
                       [&, &wanted = key](const auto* d) { return keyOf(*d) == wanted && isOfDevice(*d); });
    Suspect suspect;
    suspect.kind = SuspectKind::kNode;
    suspect.node = node.name;
    suspect.evidence.push_back(fmt::format("{} of {} devices failed; worst: {}", which.size(), node.devices,
                                           deviationLine(worst, names)));
    suspect.next = worst.remedy;
    suspect.limitSource = worst.limitSource;
    suspect.failed = worst.outcome != Outcome::kError;
    suspect.unmeasured = !suspect.failed;
    suspect.grade = gradeOf(worst, names);
    suspect.stages.insert(names.texts[worst.stage]);
    found.push_back(std::move(suspect));
  }
  std::erase_if(failures, [&](const auto* d) { return isOfDevice(*d) && devices.contains(keyOf(*d)); });
  return found;
}

std::string deviationLine(const DeviationSummary& d, const FleetNames& names) {
  const std::string& metric = names.texts[d.metric];
  return fmt::format("{}: {}{}{}", outcomeName(d.outcome), printable(names.texts[d.stage]),
                     metric.empty() ? "" : ", " + printable(metric), d.detail.empty() ? "" : ": " + d.detail);
}

CulpritFigures::CulpritFigures(const NodeSummary& record, const FleetNames& names) : names_(names) {
  constexpr std::string_view kOfCulprits = ".culprit_";
  for (const Figure& figure : record.figures) {
    const FigureKey& key = names.figures[figure.key];
    if (key.metric.find(kOfCulprits) == std::string::npos) continue;
    const auto culprit = key.labels.find("culprit");
    if (culprit != key.labels.end())
      medians_.try_emplace({key.metric, key.unit, culprit->second}, static_cast<double>(figure.median));
  }
}

std::string CulpritFigures::evidenceOf(const DeviationSummary& d) const {
  Suspect suspect;
  if (!readCulprit(d.labels, suspect)) return deviationLine(d, names_);
  const std::string& metric = names_.texts[d.metric];
  const std::string stem = metric.substr(0, metric.find('.') + 1) + "culprit_", culprit = culpritIn(d.labels);
  const auto valueOf = [&](const std::string& name, const char* unit) {
    const auto found = medians_.find({stem + name, unit, culprit});
    return found == medians_.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  for (const auto& [name, unit] : {std::pair{"bandwidth", "B/s"}, {"latency", "s"}}) {
    const double value = valueOf(name, unit), peers = valueOf(std::string("peer_") + name, unit);
    if (value > 0 && peers > 0)
      return fmt::format("{}: {}, {}: {} {} of its peers", outcomeName(d.outcome),
                         printable(names_.texts[d.stage]), printable(metric), name,
                         shareText(value, peers, unit));
  }
  return deviationLine(d, names_);
}

std::string remedyOf(const DeviationSummary& d) {
  return remedyFor(d.remedy, labelIn(d.labels, "kind"));
}

std::string linkName(const std::string& a, const std::string& b) {
  return std::min(a, b) + std::string(kEnds) + std::max(a, b);
}

std::vector<std::string> nodesOf(const Suspect& suspect) {
  if (!suspect.node.empty()) return {suspect.node};
  const size_t ends = suspect.what.find(kEnds);
  if (suspect.kind != SuspectKind::kLink || ends == std::string::npos) return {};
  const std::string second = suspect.what.substr(ends + kEnds.size());
  return {suspect.what.substr(0, ends), second.substr(0, second.find(", "))};
}

}  // namespace muster::fleet
