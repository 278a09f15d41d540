// SPDX-License-Identifier: Apache-2.0
// First-order times of memory patterns, training, collectives and the ring. They name parameters of the
// plugins, as plans do; a plan's own tests have no estimate here.
#include "runner/app/stage/work_estimate.h"

#include <algorithm>
#include <cmath>

#include "runner/sku/network_peaks.h"

namespace muster {
namespace {

/// Shares of peaks that healthy devices reach: 79% to 87% in copies (Azure/AI-benchmarking-guide), 71% to 87%
/// in bf16 at 8192^3 (huggingface/gpu-fryer), 90% to 95% of a NIC (Azure/azurehpc-health-checks).
constexpr double kMemoryShare = 0.87;
constexpr double kFlopsShare = 0.7;
constexpr double kNetworkShare = 0.95;
constexpr double kHop = 20e-6;          ///< seconds that a small collective takes in a node
constexpr double kNodeHop = 5e-6;       ///< of a message between nodes
constexpr double kBackward = 2;         ///< backward passes cost twice a forward pass
constexpr double kLargestBatch = 1000;  ///< runs of a collective in one sample
constexpr int kTransfers = 5;           ///< gradient exchanges that training times by themselves
constexpr int kCalibrationPasses = 22;  ///< forward passes in f32 before inference

double numberOf(const Case& c, const char* name) {
  const auto at = c.params.find(name);
  return at != c.params.end() && at->is_number() ? at->get<double>() : 0;
}

std::string textOf(const Case& c, const char* name) {
  const auto at = c.params.find(name);
  return at != c.params.end() && at->is_string() ? at->get<std::string>() : "";
}

size_t itemsOf(const Case& c, const char* name) {
  const auto at = c.params.find(name);
  return at != c.params.end() && at->is_array() ? at->size() : 1;
}

double peakOf(const EstimatedNode& node, const std::string& name) {
  const auto at = node.peaks.find(name);
  return at == node.peaks.end() ? 0 : at->second;
}

double memoryRate(const EstimatedNode& node) {
  return kMemoryShare * peakOf(node, "memory_bandwidth");
}

/// What the links between devices of a node carry: no collective's limit lies above that.
double linkRate(const EstimatedNode& node) {
  double rate = 0;
  for (const Expectation& limit : node.limits)
    if (const auto nodes = limit.where.find("nodes");
        limit.kind == CheckKind::kMin && limit.metric == "collective.large_message_bus_bandwidth" &&
        nodes != limit.where.end() && nodes->second == "1")
      rate = std::max(rate, limit.limit);
  return rate;
}

/// Bus bandwidth of large messages in the group; 0: not known.
double busRate(const EstimatedNode& node, const std::string& op) {
  const double within = linkRate(node);
  if (node.nodes == 1) return within;
  const double between = kNetworkShare * peakOf(node, std::string(kNodePeak) + "." + op);
  return node.ranks == 1 ? between : std::min(within, between);
}

double busFactor(const std::string& op, double ranks) {
  if (op == "all_reduce") return 2 * (ranks - 1) / ranks;
  const bool whole = op == "broadcast" || op == "reduce" || op == "sendrecv";
  return whole ? 1 : (ranks - 1) / ranks;
}

/// Each pattern is written and read back.
std::optional<double> patternSeconds(const Case& c, const EstimatedNode& node) {
  const double fraction = numberOf(c, "fraction"), rate = memoryRate(node);
  const double bytes = fraction > 0 ? fraction * node.memory : numberOf(c, "bytes");
  if (!(rate > 0) || !(bytes > 0)) return std::nullopt;
  return numberOf(c, "passes") * static_cast<double>(itemsOf(c, "patterns")) * 2 * bytes / rate;
}

/// Of a forward pass: operations and elements moved for each sample, and trained values.
struct ModelWork {
  double flops = 0;
  double moved = 0;
  double parameters = 0;
};

/// At 224 x 224 pixels and a first stage of 64 channels, with batch normalisation not fused.
constexpr ModelWork kResnet18 = {3.63e9, 13.9e6, 11.7e6};
constexpr ModelWork kResnet50 = {8.18e9, 61.6e6, 25.6e6};

ModelWork resnetWork(const Case& c, const ModelWork& usual) {
  const std::string data = textOf(c, "data_mode");
  double pixels = numberOf(c, "image_size");
  if (pixels == 0) pixels = data.empty() || data == "synthetic" || data == "imagenet" ? 224 : 32;
  const double area = pixels * pixels / (224 * 224), width = numberOf(c, "width") / 64;
  return {usual.flops * area * width * width, usual.moved * area * width, usual.parameters * width * width};
}

ModelWork transformerWork(const Case& c) {
  const double d = numberOf(c, "dimension"), ff = numberOf(c, "feed_forward"),
               tokens = numberOf(c, "sequence");
  const double layers = numberOf(c, "layers"), vocabulary = numberOf(c, "vocabulary");
  const double weights = layers * (4 * d * d + 2 * d * ff) + vocabulary * d;
  return {tokens * (2 * weights + 2 * layers * d * tokens),
          tokens * (layers * (24 * d + 2 * ff) + 4 * vocabulary), weights + (vocabulary + tokens) * d};
}

ModelWork workOf(const Case& c) {
  const std::string model = textOf(c, "model");
  if (model == "transformer") return transformerWork(c);
  return resnetWork(c, model == "resnet18" ? kResnet18 : kResnet50);
}

/// A step of one rank by itself, as so many forward passes. Layers are limited by their operations or by
/// their traffic: it takes longer than either of both sums and less than their sum.
std::optional<double> stepSeconds(const Case& c, const ModelWork& work, const EstimatedNode& node,
                                  const std::string& dtype, double passes) {
  const double flops = kFlopsShare * peakOf(node, "flops." + dtype), memory = memoryRate(node);
  if (!(flops > 0) || !(memory > 0)) return std::nullopt;
  const double batch = numberOf(c, "batch_size"), element = dtype == "bf16" || dtype == "f16" ? 2 : 4;
  const double computing = passes * work.flops * batch / flops;
  const double moving = passes * (work.moved * batch * element + 4 * work.parameters) / memory;
  return std::hypot(computing, moving);
}

/// Communication is hidden behind the backward pass as far as it is shorter.
std::optional<double> trainingSeconds(const Case& c, const EstimatedNode& node) {
  if (numberOf(c, "epochs") > 0) return std::nullopt;  // the data set decides
  const ModelWork work = workOf(c);
  const auto alone = stepSeconds(c, work, node, textOf(c, "dtype"), 1 + kBackward);
  if (!alone) return std::nullopt;
  const int ranks = node.ranks * node.nodes;
  const double runs = c.params.contains("iterations")
                          ? 2 * numberOf(c, "iterations")
                          : numberOf(c, "warmup_iterations") + numberOf(c, "active_iterations");
  if (ranks == 1) return runs * *alone;
  const double rate = busRate(node, "all_reduce");
  if (!(rate > 0)) return std::nullopt;
  const double exchange = busFactor("all_reduce", ranks) * 4 * work.parameters / rate;
  const double solo = numberOf(c, "solo_iterations");
  return runs * std::max(*alone, *alone / (1 + kBackward) + exchange) + 2 * solo * *alone +
         (solo > 0 ? kTransfers * exchange : 0);
}

/// The logits in f32 come first.
std::optional<double> inferenceSeconds(const Case& c, const EstimatedNode& node) {
  const ModelWork work = workOf(c);
  const auto timed = stepSeconds(c, work, node, textOf(c, "dtype"), 1);
  const auto expected = stepSeconds(c, work, node, "f32", 1);
  if (!timed || !expected) return std::nullopt;
  return (numberOf(c, "warmup_iterations") + numberOf(c, "active_iterations")) * *timed +
         kCalibrationPasses * *expected;
}

/// One size in one placement, as plugins/collective/measure.cpp runs it.
double placementSeconds(const Case& c, double once, double prepare, bool inPlace) {
  const double batch = std::clamp(std::ceil(numberOf(c, "sample_time") / once), 1.0, kLargestBatch);
  const double checks = numberOf(c, "checks"), samples = numberOf(c, "iterations");
  const double prepared = checks + (inPlace && batch == 1 ? samples : 0);
  return (checks + numberOf(c, "warmup") + 1 + samples * batch) * once + prepared * prepare;
}

std::optional<double> sweepSeconds(const Case& c, const EstimatedNode& node) {
  const double ranks = node.ranks * node.nodes;
  if (ranks < 2) return 0;  // skipped
  const std::string op = textOf(c, "op");
  // Through the NICs inside of a node, too.
  const bool forced = node.nodes == 1 && textOf(c, "fabric") == "ib-forced";
  const double rate = forced ? kNetworkShare * peakOf(node, kRailPeak) : busRate(node, op);
  const double memory = memoryRate(node);
  const double from = numberOf(c, "from"), factor = numberOf(c, "factor");
  if (!(rate > 0) || !(memory > 0) || !(from > 0) || !(factor > 1)) return std::nullopt;
  const double hops = kHop + kNodeHop * std::ceil(std::log2(forced ? node.ranks : node.nodes));
  double seconds = 0;
  for (double bytes = from; bytes <= numberOf(c, "to") * (1 + 1e-9); bytes *= factor) {
    const double once = (op == "all_reduce" ? 2 : 1) * hops + bytes * busFactor(op, ranks) / rate;
    const bool both = op != "alltoall" && op != "sendrecv";
    for (const Json& placement : c.params.value("placements", Json::array()))
      if (const bool inPlace = placement == "in_place"; both || !inPlace)
        seconds += placementSeconds(c, once, bytes / memory, inPlace);
  }
  return seconds;
}

/// Rounds in which every node meets two others, or all others.
double ringRounds(const Case& c, int members) {
  if (members == 2) return 1;
  if (textOf(c, "coverage") == "all") return members % 2 == 0 ? members - 1 : members;
  return members % 2 == 0 ? 2 : 3;
}

/// Of a healthy ring: what is slow is measured again, over `confirm`.
std::optional<double> ringSeconds(const Case& c, const EstimatedNode& node) {
  const int members = node.nodes > 1 ? node.nodes : node.ranks;
  if (members < 2) return 0;  // skipped
  const int rails = node.nodes > 1 ? node.ranks : 1;
  const double rate = node.nodes > 1 ? kNetworkShare * peakOf(node, kRailPeak) : linkRate(node);
  if (!(rate > 0)) return std::nullopt;
  const std::string mode = textOf(c, "rails");
  const double phases =
      (rails > 1 && mode != "together" ? rails : 0) + (rails == 1 || mode != "alone" ? 1 : 0);
  // Simulated exchanges need no warm-up.
  const double samples = numberOf(c, "samples") + (node.simulated ? 0 : numberOf(c, "warmup"));
  const double each = 2 * numberOf(c, "bytes") / rate + 3 * (node.nodes > 1 ? kNodeHop : kHop / 2);
  return ringRounds(c, members) * phases * samples * each;
}

}  // namespace

std::optional<double> workSeconds(const Stage& stage, const Case& c, const EstimatedNode& node) {
  const std::string test = stage.plugin + "." + stage.test;
  if (test == "memory.pattern") return patternSeconds(c, node);
  if (test == "train.inference") return inferenceSeconds(c, node);
  if (stage.plugin == "train") return trainingSeconds(c, node);
  if (test == "collective.sweep") return sweepSeconds(c, node);
  if (test == "ring.ring") return ringSeconds(c, node);
  // Simulated time passes by itself.
  if (test == "env.health") return node.simulated ? 0 : numberOf(c, "idle_window");
  return std::nullopt;
}

}  // namespace muster
