// SPDX-License-Identifier: Apache-2.0
// The cluster on paper. The bottleneck of a pair decides: the slowest of both nodes, their link and uplinks.
#include "tests/plugins/ring/ring_world.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <set>

#include "plugins/ring/solver/lane_figures.h"

namespace muster::ring::testing {
namespace {

constexpr double kFullSpeed = 48e9;
constexpr int kLeafSize = 16;
constexpr size_t kRails = 8;
constexpr double kRoundSeconds = 0.1;
constexpr double kConfirmSeconds = 30;  ///< the parameter's default
/// The excuse of a load that the kernel tells of, by the logarithm of what it costs: see meter.cpp.
constexpr double kToldOfWaits = 1.5;

/// xoshiro256** (Blackman and Vigna 2018), seeded by SplitMix64.
class Generator {
 public:
  explicit Generator(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  int below(int n) { return static_cast<int>(uniform() * n); }
  /// Marsaglia's polar method.
  double normal() {
    if (spare_) {
      spare_ = false;
      return kept_;
    }
    for (;;) {
      const double x = 2 * uniform() - 1;
      const double y = 2 * uniform() - 1;
      const double s = x * x + y * y;
      if (s >= 1 || s == 0) continue;
      const double scale = std::sqrt(-2 * std::log(s) / s);
      kept_ = y * scale;
      spare_ = true;
      return x * scale;
    }
  }
  /// Mean 0, sigma 1, skewness -1: a gamma of shape 4, mirrored.
  double leftSkewed() {
    double product = 1;
    for (int i = 0; i < 4; ++i) product *= uniform();
    return (4 + std::log(product)) / 2;
  }

 private:
  std::array<uint64_t, 4> state_{};
  double kept_ = 0;
  bool spare_ = false;
};

bool skewed(Noise noise) {
  return noise == Noise::kSkewed || noise == Noise::kPersistentSkewed;
}
bool persistent(Noise noise) {
  return noise == Noise::kPersistentNormal || noise == Noise::kPersistentSkewed;
}

class World {
 public:
  World(const WorldSpec& spec, uint64_t seed) : spec_(spec), random_(seed) {
    plantFaults();
    beginLoad();
    RoundLog log(spec.nodes, topology_, lanes(), spec.coverage);
    if (spec.load.nodesPerHost > 1) {
      std::vector<int> machines;
      for (int node = 0; node < spec.nodes; ++node) machines.push_back(node / spec.load.nodesPerHost);
      log.setMachines(std::move(machines));
    }
    for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
      const int number = log.rounds();
      for (const Pair& pair : round) {
        const std::vector<double> speeds = measure(log, pair);
        log.add(number, pair, speeds.data(), spreads(log).data(), excuses(log, pair).data());
      }
      pass(kRoundSeconds);
      lookAgain(log);
    }
    visitAgain(log);
    result_.rounds = log.rounds();
    const Resolution resolution = resolutionOf(log);
    result_.smallestLoss = resolution.loss;
    result_.blind = resolution.blind;
    compare(solve(log));
  }
  [[nodiscard]] const TrialResult& result() const { return result_; }

 private:
  [[nodiscard]] std::vector<Lane> lanes() const {
    if (spec_.plant != Plant::kNodeRail && !spec_.rails) return {Lane{Quantity::kBandwidth, "all"}};
    std::vector<Lane> lanes;
    for (size_t rail = 0; rail < kRails; ++rail)
      lanes.push_back({Quantity::kBandwidth, std::to_string(rail)});
    return lanes;
  }

  std::vector<int> distinctNodes(int count) {
    std::set<int> chosen;
    while (static_cast<int>(chosen.size()) < count) chosen.insert(random_.below(spec_.nodes));
    return {chosen.begin(), chosen.end()};
  }

  void plantNodes(int count) {
    for (int node : distinctNodes(count)) faults_.push_back({Culprit::Kind::kNode, {node}, "", -1});
  }

  void plantFaults() {
    switch (spec_.plant) {
      case Plant::kNothing:
        break;
      case Plant::kOneNode:
        return plantNodes(1);
      case Plant::kThreeNodes:
        return plantNodes(3);
      case Plant::kPercentOfNodes:
        return plantNodes(std::max(1, spec_.nodes / 100));
      case Plant::kLink:
        return plantLink();
      case Plant::kNodeRail:
        faults_.push_back({Culprit::Kind::kNodeRail,
                           {random_.below(spec_.nodes)},
                           std::to_string(random_.below(static_cast<int>(kRails))),
                           -1});
        break;
      case Plant::kUplink:
        return plantUplink();
    }
  }

  /// A link that the opening rounds use: a ring cannot see any other.
  void plantLink() {
    const auto rounds = spec_.coverage == Coverage::kAll ? tournamentRounds(spec_.nodes)
                                                         : openingRounds(spec_.nodes, topology_);
    std::vector<Pair> all;
    for (const Round& round : rounds) all.insert(all.end(), round.begin(), round.end());
    const Pair pair = all[static_cast<size_t>(random_.below(static_cast<int>(all.size())))];
    faults_.push_back({Culprit::Kind::kLink, {pair.a, pair.b}, "", -1});
  }

  void plantUplink() {
    const int size = std::max(2, std::min(kLeafSize, spec_.nodes / 4));
    for (int node = 0; node < spec_.nodes; ++node) topology_.leafOf.push_back(node / size);
    for (int leaf = 0; leaf <= topology_.leafOf.back(); ++leaf)
      topology_.names.push_back("leaf" + std::to_string(leaf));
    // The last leaf may have a single node, whose uplink nobody can tell from the node.
    const int whole = spec_.nodes / size;
    faults_.push_back({Culprit::Kind::kLeafUplink, {}, "", random_.below(whole)});
  }

  [[nodiscard]] bool slows(const Fault& fault, const Pair& pair, const Lane& lane) const {
    switch (fault.kind) {
      case Culprit::Kind::kNode:
        return pair.a == fault.nodes[0] || pair.b == fault.nodes[0];
      case Culprit::Kind::kNodeRail:
        return (pair.a == fault.nodes[0] || pair.b == fault.nodes[0]) && lane.rail == fault.rail;
      case Culprit::Kind::kLink:
        return pair.a == fault.nodes[0] && pair.b == fault.nodes[1];
      case Culprit::Kind::kLeafUplink:
        return topology_.crosses(pair) &&
               (topology_.leaf(pair.a) == fault.leaf || topology_.leaf(pair.b) == fault.leaf);
      case Culprit::Kind::kRail:
      case Culprit::Kind::kUnattributable:
        break;
    }
    return false;
  }

  double draw() { return skewed(spec_.noise) ? random_.leftSkewed() : random_.normal(); }

  /// Noise that is the same in all samples of a meeting is so in its further looks too.
  void lookAgain(RoundLog& log) {
    for (Round pairs = pairsToRemeasure(log); !pairs.empty(); pairs = pairsToRemeasure(log)) {
      ++result_.looks;
      for (const Pair& pair : pairs) {
        const std::vector<double> speeds = persistent(spec_.noise) ? speedsOf(log, pair) : measure(log, pair);
        log.addLook(pair, speeds.data(), spreads(log).data(), excuses(log, pair).data());
      }
      pass(kRoundSeconds);
    }
  }

  void visitAgain(RoundLog& log) {
    for (auto rounds = nextVisit(log); !rounds.empty(); rounds = nextVisit(log)) {
      const int visit = log.visitsHeld();
      const double after = visitTime(visit, kConfirmSeconds);
      pass(after - (visit > 0 ? visitTime(visit - 1, kConfirmSeconds) : 0));
      for (const Round& round : rounds) {
        for (const Pair& pair : round)
          log.addVisit({visit, pair, after}, measure(log, pair).data(), excuses(log, pair).data());
        pass(kRoundSeconds);
      }
    }
  }

  static std::vector<double> spreads(const RoundLog& log) { return std::vector<double>(log.lanes().size()); }

  /// What the kernel tells of the hosts of a pair.
  [[nodiscard]] std::vector<double> excuses(const RoundLog& log, const Pair& pair) const {
    const Episode& worst = worseOf(pair);
    const double excuse = worst.visible ? -kToldOfWaits * std::log(worst.factor) : 0;
    return std::vector<double>(log.lanes().size(), excuse);
  }

  /// A time in which a host is loaded, or the next one.
  struct Episode {
    double from = 0, until = 0;
    double factor = 1;
    bool visible = false;
  };

  void drawEpisode(Episode& episode) {
    const Load& load = spec_.load;
    episode.from = episode.until - std::log(random_.uniform()) / load.episodes;
    episode.until = episode.from + load.shortest * std::pow(load.longest / load.shortest, random_.uniform());
    episode.factor = 1 - load.least - (load.most - load.least) * random_.uniform();
    episode.visible = random_.uniform() < load.visible;
  }

  void beginLoad() {
    if (spec_.load.episodes <= 0) return;
    const int hosts = (spec_.nodes + spec_.load.nodesPerHost - 1) / spec_.load.nodesPerHost;
    episodes_.resize(static_cast<size_t>(hosts));
    now_ = 4 * spec_.load.longest;  // long enough after the beginning of time
    for (Episode& episode : episodes_)
      for (drawEpisode(episode); episode.until < now_;) drawEpisode(episode);
  }

  void pass(double seconds) {
    now_ += seconds;
    for (Episode& episode : episodes_)
      while (episode.until < now_) drawEpisode(episode);
  }

  [[nodiscard]] const Episode& episodeOf(int node) const {
    static const Episode kNone;
    if (episodes_.empty()) return kNone;
    const Episode& episode = episodes_[static_cast<size_t>(node / spec_.load.nodesPerHost)];
    return episode.from <= now_ ? episode : kNone;
  }
  [[nodiscard]] const Episode& worseOf(const Pair& pair) const {
    const Episode& a = episodeOf(pair.a);
    const Episode& b = episodeOf(pair.b);
    return a.factor < b.factor ? a : b;
  }

  static std::vector<double> speedsOf(const RoundLog& log, const Pair& pair) {
    size_t meeting = log.meetings().size();
    while (!(log.meetings()[--meeting].pair == pair)) {
    }
    std::vector<double> speeds;
    for (size_t lane = 0; lane < log.lanes().size(); ++lane) speeds.push_back(log.speed(meeting, lane));
    return speeds;
  }

  /// A speed for each lane.
  std::vector<double> measure(const RoundLog& log, const Pair& pair) {
    std::vector<double> speeds;
    for (const Lane& lane : log.lanes()) {
      const bool slow = std::any_of(faults_.begin(), faults_.end(),
                                    [&](const Fault& fault) { return slows(fault, pair, lane); });
      const double speed = kFullSpeed * (slow ? 1 - spec_.severity : 1) * worseOf(pair).factor;
      std::array<double, 15> samples{};
      const auto count = static_cast<size_t>(persistent(spec_.noise) ? 1 : spec_.samples);
      for (size_t i = 0; i < count; ++i) samples[i] = std::max(0.01, 1 + spec_.sigma * draw());
      std::nth_element(samples.begin(), samples.begin() + count / 2, samples.begin() + count);
      speeds.push_back(speed * samples[count / 2]);
    }
    return speeds;
  }

  static bool same(const Fault& fault, const Culprit& culprit) {
    return fault.kind == culprit.kind && fault.nodes == culprit.nodes && fault.rail == culprit.rail &&
           fault.leaf == culprit.leaf;
  }

  void compare(const std::vector<Culprit>& culprits) {
    result_.faults = static_cast<int>(faults_.size());
    for (const Culprit& culprit : culprits) {
      result_.rejecting += culprit.undecided ? 0 : 1;
      const bool right = std::any_of(faults_.begin(), faults_.end(),
                                     [&](const Fault& fault) { return same(fault, culprit); });
      if (culprit.kind == Culprit::Kind::kUnattributable)
        ++result_.unattributable;
      else
        ++(right ? result_.named : result_.wrong);
      if (culprit.kind != Culprit::Kind::kUnattributable)
        result_.findings.push_back({culprit.confidence, right});
    }
  }

  WorldSpec spec_;
  Generator random_;
  Topology topology_;
  std::vector<Fault> faults_;
  double now_ = 0;                 ///< seconds
  std::vector<Episode> episodes_;  ///< by host: the present one or the next
  TrialResult result_;
};

}  // namespace

const char* noiseName(Noise noise) {
  switch (noise) {
    case Noise::kNormal:
      return "normal";
    case Noise::kSkewed:
      return "left-skewed";
    case Noise::kPersistentNormal:
      return "normal, persistent";
    case Noise::kPersistentSkewed:
      return "left-skewed, persistent";
  }
  return "?";
}

const char* plantName(Plant plant) {
  switch (plant) {
    case Plant::kNothing:
      return "healthy";
    case Plant::kOneNode:
      return "1 node";
    case Plant::kThreeNodes:
      return "3 nodes";
    case Plant::kPercentOfNodes:
      return "1% of nodes";
    case Plant::kLink:
      return "link";
    case Plant::kNodeRail:
      return "rail of a node";
    case Plant::kUplink:
      return "leaf uplink";
  }
  return "?";
}

TrialResult runTrial(const WorldSpec& spec, uint64_t seed) {
  return World(spec, seed).result();
}

}  // namespace muster::ring::testing
