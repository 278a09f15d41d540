// SPDX-License-Identifier: Apache-2.0
// What the rendezvous of large runs takes, and whom it names when somebody dies: the product's own store,
// relays, links and stages over a simulated network in virtual time (fibers.h, network.h, cluster.h).
//
// Prints a row for each number of nodes and the exponents with which its values grow, then the deaths. Ends 1
// when a death was not told as it was, or when a goal of --check is missed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/protocol/cluster.h"
#include "tests/bench/protocol/request_cost.h"

namespace muster::bench {
namespace {

struct Options {
  std::vector<int> nodes = {100, 1000, 10000};
  int deaths = 1000;
  int deathNodes = 50;
  bool check = false;
  bool measure = false;
  ClusterSimOptions cluster;
};

constexpr const char* kColumns[] = {"join s",       "barrier ms",    "end s", "beats: CPU %",
                                    "beats: req/s", "requests/node", "MB in", "MB out"};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// The slope of the line through the logarithms.
double exponent(const std::vector<double>& xs, const std::vector<double>& ys) {
  double meanX = 0, meanY = 0, above = 0, below = 0;
  const auto n = static_cast<double>(xs.size());
  const auto log = [](double value) { return std::log(std::max(value, 1e-9)); };
  for (size_t i = 0; i < xs.size(); ++i) {
    meanX += log(xs[i]) / n;
    meanY += log(ys[i]) / n;
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    above += (log(xs[i]) - meanX) * (log(ys[i]) - meanY);
    below += (log(xs[i]) - meanX) * (log(xs[i]) - meanX);
  }
  return below > 0 ? above / below : 0;
}

/// What node 0 does for heartbeats: its own code as measured, and its store's thread as --request-cost says.
double heartbeatLoad(const ClusterSimResult& r, const NetworkOptions& network) {
  return (r.workCpu + static_cast<double>(r.workRequests) * (network.requestCost + network.answerCost)) /
         r.workTime;
}

bool measureGrowth(const Options& options) {
  fmt::print("{:14}", "nodes x ranks");
  for (const char* column : kColumns) fmt::print("{:>15}", column);
  fmt::print("\n");
  std::vector<double> sizes;
  std::vector<std::vector<double>> columns(std::size(kColumns));
  bool met = true;
  for (const int nodes : options.nodes) {
    ClusterSimOptions cluster = options.cluster;
    cluster.nodes = nodes;
    const ClusterSimResult r = ClusterSim(cluster).run();
    for (const std::string& culprit : r.culprits)
      if (!culprit.empty()) {
        fmt::print("{} x {}: {}\n", nodes, cluster.ranks, culprit);
        return false;
      }
    const double load = heartbeatLoad(r, cluster.network), barrier = median(r.barriers);
    const double values[] = {r.joined,
                             barrier * 1e3,
                             r.stageEnd,
                             load * 100,
                             static_cast<double>(r.workRequests) / r.workTime,
                             static_cast<double>(r.requests) / nodes,
                             static_cast<double>(r.bytesIn) / 1e6,
                             static_cast<double>(r.bytesOut) / 1e6};
    sizes.push_back(nodes);
    fmt::print("{:14}", fmt::format("{} x {}", nodes, cluster.ranks));
    for (size_t i = 0; i < columns.size(); ++i) {
      columns[i].push_back(values[i]);
      fmt::print("{:15.4g}", values[i]);
    }
    fmt::print("\n");
    fflush(stdout);
    met = met && r.joined <= 10 && barrier <= 0.1 && load <= 0.1;
  }
  if (sizes.size() > 1) {
    fmt::print("{:14}", "exponent");
    for (const auto& column : columns) fmt::print("{:15.2f}", exponent(sizes, column));
    fmt::print("\n");
  }
  if (!met) fmt::print("missed: join within 10 s, a barrier within 100 ms, 10 % of a core for heartbeats\n");
  return met || !options.check;
}

const char* nameOf(Death death) {
  constexpr const char* kNames[] = {"none", "rank", "runner", "host", "node 0", "host of node 0"};
  return kNames[static_cast<size_t>(death)];
}

const char* nameOf(Moment moment) {
  constexpr const char* kNames[] = {"joining", "barriers", "working", "leaving"};
  return kNames[static_cast<size_t>(moment)];
}

struct Tally {
  int deaths = 0, right = 0, inTime = 0;
  double slowest = 0;
};

/// A survivor says who died; of a node that did not join while it waited, that it did not come; nothing where
/// all ranks had ended, since some nodes have left by then.
bool isRight(const ClusterSimResult& r, int survivor) {
  const std::string& said = r.culprits[static_cast<size_t>(survivor)];
  if (said.empty()) return r.allEnded;
  if (said.find(r.died) != std::string::npos) return true;
  const std::string absent =
      r.diedNode == 0 ? "node 0 did not answer at"
                      : fmt::format("1 of {} nodes did not arrive: node {}", r.culprits.size(), r.diedNode);
  return !bothJoined(r, survivor) && said.find(absent) != std::string::npos;
}

bool measureDeaths(const Options& options) {
  std::map<std::pair<Death, Moment>, Tally> tallies;
  std::mt19937_64 random(options.cluster.seed);
  std::uniform_real_distribution<double> draw(0, 1);
  int wrong = 0;
  for (int i = 0; i < options.deaths; ++i) {
    ClusterSimOptions cluster = options.cluster;
    cluster.nodes = options.deathNodes;
    cluster.seed = options.cluster.seed + static_cast<uint64_t>(i) * 7919;
    cluster.barriers = 1;
    cluster.spread = 1;
    cluster.work = 3 * cluster.lostAfter;
    const auto death = static_cast<Death>(1 + random() % 5);
    const auto moment = static_cast<Moment>(death == Death::kRank ? 1 + random() % 2 : random() % 4);
    const ClusterSimResult r = ClusterSim(cluster).run(death, moment, draw(random));
    if (r.diedNode < 0) continue;  // all had left before
    Tally& tally = tallies[{death, moment}];
    ++tally.deaths;
    std::string wrongly;
    for (const int node : r.survivors)
      if (!isRight(r, node))
        wrongly = fmt::format("node {}: {}", node, r.culprits[static_cast<size_t>(node)]);
    if (wrongly.empty())
      ++tally.right;
    else if (++wrong <= 5)
      fmt::print("seed {}: \"{}\" died while {}, and {}\n", cluster.seed, r.died, nameOf(moment), wrongly);
    if (r.noticed <= cluster.lostAfter + 2)
      ++tally.inTime;
    else
      fmt::print("seed {}: {} {} {}s {}\n", cluster.seed, r.died, nameOf(moment), r.noticed,
                 r.culprits[r.survivors[0]]);
    tally.slowest = std::max(tally.slowest, r.noticed);
  }
  bool good = true;
  fmt::print("\n{:16}{:10}{:>10}{:>14}{:>14}{:>14}\n", "death of", "while", "deaths", "named right",
             "in time", "slowest s");
  for (const auto& [kind, tally] : tallies) {
    fmt::print("{:16}{:10}{:10}{:14}{:14}{:14.2f}\n", nameOf(kind.first), nameOf(kind.second), tally.deaths,
               tally.right, tally.inTime, tally.slowest);
    good = good && tally.right == tally.deaths && tally.inTime == tally.deaths;
  }
  return good;
}

int runAll(int argc, char** argv) {
  Options options;
  CLI::App app("Muster's rendezvous in virtual time");
  app.add_option("--nodes", options.nodes)->delimiter(',');
  app.add_option("--ranks", options.cluster.ranks);
  app.add_option("--deaths", options.deaths);
  app.add_option("--death-nodes", options.deathNodes);
  app.add_option("--seed", options.cluster.seed);
  app.add_option("--spread", options.cluster.spread, "seconds over which nodes start");
  app.add_option("--lost-after", options.cluster.lostAfter);
  app.add_option("--round-trip", options.cluster.network.roundTrip, "seconds");
  app.add_option("--bandwidth", options.cluster.network.bandwidth, "bits per second of node 0");
  app.add_option("--loss", options.cluster.network.loss, "share of messages");
  app.add_option("--request-cost", options.cluster.network.requestCost,
                 "seconds of node 0's store per request");
  app.add_option("--answer-cost", options.cluster.network.answerCost, "seconds of node 0's store per answer");
  app.add_option("--proof-cost", options.cluster.network.proofCost,
                 "seconds of node 0's store per connection");
  app.add_flag("--measure-costs", options.measure, "both costs as this machine has them");
  app.add_flag("--check", options.check, "end 1 when a goal is missed");
  CLI11_PARSE(app, argc, argv);
  if (options.measure) {
    constexpr int kConnections = 400, kRounds = 20;
    const auto costs = measureStoreCosts(kConnections, kRounds);
    if (!costs.ok()) {
      fmt::print("{}\n", costs.error().text());
      return 1;
    }
    fmt::print(
        "the store's thread takes {:.1f} us for a connection, {:.1f} for a heartbeat, {:.1f} for a node that "
        "enters a "
        "barrier, {:.1f} for its answer\n",
        costs->proof * 1e6, costs->heartbeat * 1e6, costs->enter * 1e6, costs->answer * 1e6);
    options.cluster.network.proofCost = costs->proof;
    options.cluster.network.requestCost = std::max(costs->enter, costs->heartbeat - costs->answer);
    options.cluster.network.answerCost = costs->answer;
  }
  const bool grown = options.nodes.empty() || measureGrowth(options);
  const bool told = options.deaths == 0 || measureDeaths(options);
  return grown && told ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::runAll(argc, argv);
}
