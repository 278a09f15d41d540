// SPDX-License-Identifier: Apache-2.0
// Finds machines, parts and runs that appear under two names.
#include "reports/fleet/check/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "reports/fleet/check/record_finding.h"
#include "runner/core/keyed_hash.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr size_t kShortest = 4;  ///< characters of the shortest text that is taken for a serial
/// What vendors write where there is no serial, in lower case.
constexpr std::array<std::string_view, 26> kNoSerials = {"to be filled by o.e.m.",
                                                         "to be filled by oem",
                                                         "default string",
                                                         "not specified",
                                                         "not applicable",
                                                         "not available",
                                                         "not present",
                                                         "not provided",
                                                         "unspecified",
                                                         "undefined",
                                                         "unknown",
                                                         "invalid",
                                                         "none",
                                                         "null",
                                                         "empty",
                                                         "[n/a]",
                                                         "o.e.m.",
                                                         "no asset information",
                                                         "serial number",
                                                         "system serial number",
                                                         "base board serial number",
                                                         "chassis serial number",
                                                         "board serial",
                                                         "03000200-0400-0500-0006-000700080009",
                                                         "00020003-0004-0005-0006-000700080009",
                                                         "12345678-1234-5678-90ab-cddeefaabbcc"};

std::string lower(std::string_view text) {
  std::string result(trim(text));
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// "0123456789" and the like: each digit is the last one's successor.
bool counts(std::string_view digits) {
  for (size_t i = 1; i < digits.size(); ++i)
    if (digits[i] - '0' != (digits[i - 1] - '0' + 1) % 10) return false;
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string known(std::string_view value) {
  return identifies(value) ? lower(value) : std::string();
}

/// Serials and UUIDs of a record's devices, without those that do not identify. One that two devices have is
/// the board that both are on, if their UUIDs differ.
struct Part {
  std::string key;   ///< equal for one part
  std::string text;  ///< "GPU serial 1652324041100"
  size_t device = 0;
};

std::string kindText(const std::string& kind) {
  return kind == "gpu" ? "GPU" : kind.empty() ? "device" : kind;
}

std::vector<Part> partsOf(const NodeSummary& record) {
  std::map<std::string, size_t> seen;
  for (const DeviceIdentity& device : record.devices) ++seen[lower(device.serial)];
  std::vector<Part> parts;
  for (size_t d = 0; d < record.devices.size(); ++d) {
    const DeviceIdentity& device = record.devices[d];
    const std::string serial = known(device.serial), uuid = known(device.uuid);
    if (!serial.empty() && seen[serial] == 1)
      parts.push_back(
          {"serial " + serial, fmt::format("{} serial {}", kindText(device.kind), device.serial), d});
    if (!uuid.empty())
      parts.push_back({"uuid " + uuid, fmt::format("{} UUID {}", kindText(device.kind), device.uuid), d});
  }
  return parts;
}

std::set<std::string> partKeys(const NodeSummary& record) {
  std::set<std::string> keys;
  for (Part& part : partsOf(record)) keys.insert(std::move(part.key));
  return keys;
}

/// What names the machine around the devices, known values only.
struct Frame {
  static constexpr std::array<const char*, 4> kNames = {"board serial", "product serial", "product UUID",
                                                        "management controller GUID"};
  std::array<std::string, 4> values;

  /// Nothing that both know differs, and something that both know is equal.
  [[nodiscard]] bool sameAs(const Frame& other) const {
    bool equal = false;
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k].empty() || other.values[k].empty()) continue;
      if (values[k] != other.values[k]) return false;
      equal = true;
    }
    return equal;
  }
  [[nodiscard]] bool differsFrom(const Frame& other) const {
    for (size_t k = 0; k < values.size(); ++k)
      if (!values[k].empty() && !other.values[k].empty() && values[k] != other.values[k]) return true;
    return false;
  }
};

Frame frameOf(const NodeSummary& record) {
  const MachineIds& machine = record.machine;
  return {{known(machine.boardSerial), known(machine.productSerial), known(machine.productUuid),
           known(machine.bmcGuid)}};
}

/// Which of the owners belong together.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

class IdentityCheck {
 public:
  IdentityCheck(const FleetRecords& records, const FleetOptions& options, const FleetRun& run,
                FleetNodes& nodes)
      : records_(records), options_(options), run_(run), nodes_(nodes) {}

  RecordChecks check() {
    for (const FleetNode& node : nodes_) ownerOf_.emplace(node.name, ownerOf_.size());
    counted_.resize(records_.nodes.size(), false);
    for (const FleetNode& node : nodes_)
      for (const size_t i : node.records) counted_[i] = true;
    for (const NodeSummary& record : records_.nodes) ownerOf_.emplace(record.node, ownerOf_.size());
    owners_.resize(ownerOf_.size());
    for (const auto& [name, owner] : ownerOf_) owners_[owner] = name;
    checkWithinNodes();
    checkRuns();
    checkMachines();
    return std::move(checks_);
  }

 private:
  /// One record that has a key.
  struct Holder {
    size_t owner = 0;
    size_t record = 0;
    int device = -1;
  };
  struct Key {
    std::string text;
    std::vector<Holder> holders;
  };
  using Keys = std::unordered_map<std::string, Key, KeyedHash>;

  [[nodiscard]] const NodeSummary& record(size_t i) const { return records_.nodes[i]; }
  [[nodiscard]] bool isExpected(size_t owner) const { return owner < nodes_.size(); }

  /// Whether a record belongs to the run that is judged, be its node expected or not.
  [[nodiscard]] bool isOfRun(const NodeSummary& node) const {
    return node.planSha256 == run_.planSha256 && node.overrides == run_.overrides &&
           node.simulated == run_.simulated && (options_.manyRuns || node.fleetId == run_.fleetId);
  }

  [[nodiscard]] std::string placeOf(const Holder& holder) const {
    const NodeSummary& node = record(holder.record);
    const std::string device =
        holder.device < 0 ? "" : " " + node.devices[static_cast<size_t>(holder.device)].id;
    return fmt::format("{}{} ({})", owners_[holder.owner], device, printable(node.path, 200));
  }

  /// The first holder of each owner.
  static std::vector<Holder> oneEach(const std::vector<Holder>& holders) {
    std::map<size_t, Holder> first;
    for (const Holder& holder : holders) first.emplace(holder.owner, holder);
    std::vector<Holder> each;
    for (const auto& [owner, holder] : first) each.push_back(holder);
    return each;
  }

  void report(const std::vector<Holder>& holders, const std::string& text, const char* next) {
    // Any record can name another node's identity, and be written in its name: what two of them share says
    // that one is wrong, not which.
    const bool own = std::all_of(holders.begin(), holders.end(),
                                 [&](const Holder& h) { return h.record == holders[0].record; });
    report(holders, text, next, own ? NodeState::kRejected : NodeState::kIncomplete);
  }

  void report(const std::vector<Holder>& holders, const std::string& text, const char* next,
              NodeState state) {
    RecordFinding finding;
    finding.text = text;
    finding.next = next;
    std::set<size_t> nodes;
    for (const Holder& holder : holders) {
      if (isExpected(holder.owner)) nodes.insert(holder.owner);
      if (finding.nodes.size() < kMostNamed &&
          std::find(finding.nodes.begin(), finding.nodes.end(), owners_[holder.owner]) == finding.nodes.end())
        finding.nodes.push_back(owners_[holder.owner]);
      if (finding.records.size() < kMostNamed) finding.records.push_back(record(holder.record).path);
    }
    checks_.findings.push_back(
        settled(std::move(finding), {nodes.begin(), nodes.end()}, state, records_, nodes_));
  }

  /// One part twice in one record, and records of one node that are of different machines.
  void checkWithinNodes() {
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const std::vector<size_t> list = nodes_[n].records;
      for (const size_t i : list) checkPartsOnce(n, i);
      for (size_t k = 1; k < list.size(); ++k) checkSameMachine(n, list.front(), list[k]);
      for (const size_t i : nodes_[n].repeated) checkSameMachine(n, list.front(), i);
    }
  }

  void checkPartsOnce(size_t owner, size_t i) {
    std::map<std::string, Part> seen;
    for (const Part& part : partsOf(record(i))) {
      const auto [at, fresh] = seen.emplace(part.key, part);
      if (fresh) continue;
      const auto& devices = record(i).devices;
      return report(
          {{owner, i}},
          fmt::format("{} has one part in two places: {} is {} and {} ({})", owners_[owner], part.text,
                      devices[at->second.device].id, devices[part.device].id, printable(record(i).path, 200)),
          kRunAgain);
    }
  }

  void checkSameMachine(size_t owner, size_t a, size_t b) {
    const auto one = partKeys(record(a)), other = partKeys(record(b));
    const auto within = [](const auto& part, const auto& whole) {
      return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
    };
    const bool parts = !within(one, other) && !within(other, one);
    const bool frames = !run_.simulated && frameOf(record(a)).differsFrom(frameOf(record(b)));
    if (!parts && !frames) return;
    report({{owner, a}, {owner, b}},
           fmt::format("the records of {} come from two machines: {} and {} have different {}",
                       owners_[owner], printable(record(a).path, 200), printable(record(b).path, 200),
                       frames ? "board or product serials" : "parts"),
           kRunAgain);
  }

  /// A run id belongs to one node; two records of one run are equal, or one was judged again. Redacted ones
  /// have an id of their own, and say of which record they are.
  void checkRuns() {
    Keys runs;
    for (size_t i = 0; i < records_.nodes.size(); ++i)
      for (const auto& [kind, id] :
           {std::pair("", record(i).runId), std::pair("of ", record(i).redactedFrom)}) {
        if (id.empty()) continue;
        Key& key = runs[kind + id];
        key.text = id;
        key.holders.push_back({ownerOf_.at(record(i).node), i});
      }
    std::vector<Shared> all;
    for (const Key* key : ordered(runs)) {
      auto each = oneEach(key->holders);
      if (each.size() > 1 && concerns(key->holders))
        all.emplace_back("run " + printable(key->text, 80), std::move(each));
      else
        checkVersions(key->holders);
    }
    setAside(all, "runs");
    for (const auto& [run, each] : all)
      if (each.size() > 1)
        report(each,
               fmt::format("one run appears under {} names: {} belongs to {} and {}{}", each.size(), run,
                           placeOf(each[0]), placeOf(each[1]), andMore(each)),
               "A record was copied and renamed: remove the copy, and test the node it replaced.");
  }

  /// Of records of one run, a resumed one differs from what was there before, and one that was judged again
  /// says so.
  void checkVersions(const std::vector<Holder>& holders) {
    for (size_t a = 0; a < holders.size(); ++a)
      for (size_t b = a + 1; b < holders.size(); ++b) {
        const NodeSummary& x = record(holders[a].record);
        const NodeSummary& y = record(holders[b].record);
        if (x.rejudged || y.rejudged || x.resumed != y.resumed || x.sha256 == y.sha256) continue;
        if (!isExpected(holders[a].owner)) return;
        return report(
            {holders[a], holders[b]},
            fmt::format("{} has two different records of one run ({}): {} and {}; one was edited", x.node,
                        printable(x.runId, 80), printable(x.path, 200), printable(y.path, 200)),
            "Use the original record, or retest the node.");
      }
  }

  /// What several nodes say is theirs, and those.
  using Shared = std::pair<std::string, std::vector<Holder>>;

  /// Who shares with several nodes what these do not share with each other is no machine under many names,
  /// and they are none: it alone is in question.
  void setAside(std::vector<Shared>& all, const char* kind) {
    std::map<size_t, std::vector<const Shared*>> byOwner;
    for (const Shared& shared : all)
      if (shared.second.size() > 1)
        for (const Holder& holder : shared.second) byOwner[holder.owner].push_back(&shared);
    std::set<size_t> odd;
    for (const auto& [owner, shares] : byOwner) {
      const std::set<size_t> others = partnersApart(owner, shares);
      if (others.size() < 2) continue;
      odd.insert(owner);
      std::vector<Holder> own;
      for (const Shared* shared : shares)
        for (const Holder& holder : shared->second)
          if (holder.owner == owner && own.empty()) own.push_back(holder);
      if (!concerns(own)) continue;
      std::vector<std::string> names;
      for (const size_t other : others) names.push_back(owners_[other]);
      report(
          own,
          fmt::format("{} ({}) names {} of {} as its own: {}{}", owners_[owner],
                      printable(record(own[0].record).path, 200), kind, shortNames(names), shares[0]->first,
                      shares.size() > 1 ? fmt::format(" and {} more", shares.size() - 1) : ""),
          kRunAgain, NodeState::kIncomplete);
    }
    for (Shared& shared : all)
      std::erase_if(shared.second, [&](const Holder& holder) { return odd.contains(holder.owner); });
  }

  /// Of the nodes that share something with `owner` one of each set that is connected by that.
  [[nodiscard]] static std::set<size_t> partnersApart(size_t owner,
                                                      const std::vector<const Shared*>& shares) {
    std::map<size_t, size_t> firsts;
    const auto first = [&](size_t node) {
      while (firsts.try_emplace(node, node).first->second != node) node = firsts[node];
      return node;
    };
    for (const Shared* shared : shares) {
      if (shared->second.size() > kMostPartners) return {};  // many have it: an image, not one node's claim
      size_t before = owner;
      for (const Holder& holder : shared->second) {
        if (holder.owner == owner) continue;
        const size_t now = first(holder.owner);
        if (before != owner) firsts[now] = first(before);
        before = holder.owner;
      }
    }
    std::set<size_t> apart;
    for (const auto& [node, parent] : firsts) apart.insert(first(node));
    return apart;
  }

  /// Parts, boots and machines that two names share.
  void checkMachines() {
    Groups groups(owners_.size());
    Keys keys;
    std::vector<size_t> looked;
    for (size_t i = 0; i < records_.nodes.size(); ++i)
      if (counted_[i] || isOfRun(record(i))) looked.push_back(i);
    for (const size_t i : looked) addKeys(i, keys);
    std::vector<Shared> all;
    for (const Key* key : ordered(keys)) all.push_back({key->text, oneEach(key->holders)});
    if (!run_.simulated)
      for (Shared& shared : sharedFrames(looked)) all.push_back(std::move(shared));
    if (!options_.sameMachine) setAside(all, "hardware");
    for (const auto& [text, holders] : all)
      for (size_t k = 1; k < holders.size(); ++k) groups.unite(holders[0].owner, holders[k].owner);
    std::map<size_t, std::pair<std::vector<std::string>, std::vector<Holder>>> found;
    for (const auto& [text, each] : all) {
      if (each.size() < 2) continue;
      auto& [texts, holders] = found[groups.find(each[0].owner)];
      texts.push_back(text);
      holders.insert(holders.end(), each.begin(), each.end());
    }
    for (const auto& [group, shared] : found) tell(shared.first, shared.second);
    if (!run_.simulated) noteImages(looked, groups);
  }

  void addKeys(size_t i, Keys& keys) {
    const NodeSummary& node = record(i);
    const size_t owner = ownerOf_.at(node.node);
    for (const Part& part : partsOf(node)) {
      Key& key = keys["1 " + part.key];
      key.text = part.text;
      key.holders.push_back({owner, i, static_cast<int>(part.device)});
    }
    if (node.simulated || known(node.bootId).empty()) return;
    Key& key = keys["2 " + known(node.bootId)];
    key.text = "boot id " + node.bootId;
    key.holders.push_back({owner, i});
  }

  /// By what two nodes share a frame: boards, products and controllers.
  [[nodiscard]] std::vector<Shared> sharedFrames(const std::vector<size_t>& looked) const {
    std::map<std::string, std::vector<Holder>> byValue;
    for (const size_t i : looked) {
      const Frame frame = frameOf(record(i));
      for (size_t k = 0; k < frame.values.size(); ++k)
        if (!frame.values[k].empty())
          byValue[fmt::format("{} {}", Frame::kNames[k], frame.values[k])].push_back(
              {ownerOf_.at(record(i).node), i});
    }
    std::vector<Shared> shared;
    for (const auto& [text, holders] : byValue)
      for (auto& alike : framesAlike(oneEach(holders)))
        if (alike.size() == 2 || (alike.size() > 2 && !toldApart(alike))) shared.emplace_back(text, alike);
    return shared;
  }

  /// Those whose frames are the same, together.
  [[nodiscard]] std::vector<std::vector<Holder>> framesAlike(const std::vector<Holder>& holders) const {
    std::vector<std::pair<Frame, std::vector<Holder>>> alike;
    for (const Holder& holder : holders) {
      const Frame frame = frameOf(record(holder.record));
      const auto at =
          std::find_if(alike.begin(), alike.end(), [&](const auto& one) { return one.first.sameAs(frame); });
      if (at != alike.end())
        at->second.push_back(holder);
      else if (alike.size() < kMostFrames)
        alike.push_back({frame, {holder}});
    }
    std::vector<std::vector<Holder>> groups;
    for (auto& [frame, group] : alike) groups.push_back(std::move(group));
    return groups;
  }

  /// Whether most of them have parts that no other has, or a machine id that no other has.
  [[nodiscard]] bool toldApart(const std::vector<Holder>& holders) const {
    std::map<std::string, size_t> parts, ids;  // how many have it
    const auto idOf = [&](const Holder& holder) { return known(record(holder.record).machine.machineId); };
    for (const Holder& holder : holders) {
      for (const std::string& part : partKeys(record(holder.record))) ++parts[part];
      ++ids[idOf(holder)];
    }
    size_t byParts = 0, byIds = 0;
    for (const Holder& holder : holders) {
      const auto own = partKeys(record(holder.record));
      byParts += !own.empty() && std::all_of(own.begin(), own.end(),
                                             [&](const std::string& part) { return parts[part] == 1; });
      byIds += !idOf(holder).empty() && ids[idOf(holder)] == 1;
    }
    return 2 * byParts > holders.size() || 2 * byIds > holders.size();
  }

  void tell(const std::vector<std::string>& texts, const std::vector<Holder>& holders) {
    if (!concerns(holders)) return;
    const auto each = oneEach(holders);
    std::string what = texts[0];
    if (texts.size() > 1) what += fmt::format(" and {} more", texts.size() - 1);
    const std::string who = fmt::format("{} and {}{}", placeOf(each[0]), placeOf(each[1]), andMore(each));
    if (options_.sameMachine) {
      checks_.notes.push_back(fmt::format("{} nodes share a machine (allowed by --same-machine): {} share {}",
                                          each.size(), who, what));
      return;
    }
    report(holders,
           fmt::format("the same hardware appears under {} names: {} share {}", each.size(), who, what),
           "Keep one record per machine. If nodes share a machine on purpose (tests, demos), use "
           "--same-machine.");
  }

  /// A machine id that several nodes have is worth a line, and no more.
  void noteImages(const std::vector<size_t>& looked, Groups& groups) {
    std::map<std::string, std::vector<Holder>> byId;
    for (const size_t i : looked)
      if (const std::string id = known(record(i).machine.machineId); !id.empty())
        byId[id].push_back({ownerOf_.at(record(i).node), i});
    for (const auto& [id, holders] : byId) {
      std::vector<std::string> names;
      std::set<size_t> machines;
      for (const Holder& holder : oneEach(holders)) {
        names.push_back(owners_[holder.owner]);
        machines.insert(groups.find(holder.owner));
      }
      if (machines.size() > 1)
        checks_.notes.push_back(
            fmt::format("{} nodes have the same /etc/machine-id, probably from one system image: {}; it is "
                        "not used to identify them",
                        names.size(), shortNames(names)));
    }
  }

  /// Whether a node is at stake: one that is expected, and has a record that counts.
  [[nodiscard]] bool concerns(const std::vector<Holder>& holders) const {
    return std::any_of(holders.begin(), holders.end(), [&](const Holder& h) {
      return isExpected(h.owner) && !nodes_[h.owner].records.empty();
    });
  }

  static std::string andMore(const std::vector<Holder>& each) {
    return each.size() > 2 ? fmt::format(" and {} more", each.size() - 2) : "";
  }

  /// In an order that does not depend on hashes: by the keys' texts.
  static std::vector<const Key*> ordered(const Keys& keys) {
    std::vector<const Key*> list;
    for (const auto& [id, key] : keys)
      if (key.holders.size() > 1) list.push_back(&key);
    std::sort(list.begin(), list.end(), [](const Key* a, const Key* b) { return a->text < b->text; });
    return list;
  }

  static constexpr size_t kMostFrames = 64;
  static constexpr size_t kMostPartners = 16;
  static constexpr const char* kRunAgain =
      "Retest the node in its current state; its old records show another state.";

  const FleetRecords& records_;
  const FleetOptions& options_;
  const FleetRun& run_;
  FleetNodes& nodes_;
  RecordChecks checks_;
  std::map<std::string, size_t> ownerOf_;  ///< expected nodes have the numbers that they have in the fleet
  std::vector<std::string> owners_;
  std::vector<bool> counted_;
};

}  // namespace

bool identifies(std::string_view value) {
  const std::string text = lower(value);
  if (std::find(kNoSerials.begin(), kNoSerials.end(), text) != kNoSerials.end()) return false;
  std::string bare;
  for (const char c : text.starts_with("gpu-") ? text.substr(4) : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) bare += c;
  if (bare.size() < kShortest || counts(bare)) return false;
  return bare.find_first_not_of(bare.front()) != std::string::npos;
}

RecordChecks checkIdentities(const FleetRecords& records, const FleetOptions& options, const FleetRun& run,
                             FleetNodes& nodes) {
  return IdentityCheck(records, options, run, nodes).check();
}

}  // namespace muster::fleet
