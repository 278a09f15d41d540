// SPDX-License-Identifier: Apache-2.0
// Reads NCCL's log line by line. The forms of its lines are those of NCCL 2.18 to 2.28.
#include "kernels/cuda/nccl/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr size_t kMostWarnings = 8;
constexpr size_t kLongestPath = 80;

/// What follows `key` in `text`; none where it does not occur.
std::optional<std::string_view> after(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + key.size());
}

std::string_view untilAny(std::string_view text, const char* ends) {
  return text.substr(0, text.find_first_of(ends));
}

template <typename T>
bool readNumber(std::string_view& text, T& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool isVariable(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

void keepVariable(std::string_view name, std::string_view value, NcclLog& log) {
  if (isVariable(name) && log.environment.size() < NcclLogReader::kMostEntries)
    log.environment[std::string(name)] = printable(value, 400);
}

/// "NCCL_IB_TIMEOUT set by environment to 23.": numbers end in a full stop, texts do not. "NCCL_IB_HCA set to
/// mlx5"; "Comm config minCTAs reset to NCCL_MIN_CTAS=8".
bool readEnvironment(std::string_view text, NcclLog& log) {
  if (const auto config = after(text, " reset to "); config && text.starts_with("Comm config ")) {
    const size_t equals = config->find('=');
    if (equals == std::string_view::npos) return false;
    keepVariable(config->substr(0, equals), trim(config->substr(equals + 1)), log);
    return true;
  }
  auto rest = after(text, " set by environment to ");
  if (!rest) rest = after(text, " set to ");
  const std::string_view name = text.substr(0, text.find(' '));
  if (!rest || !name.starts_with("NCCL_") || !isVariable(name)) return false;
  std::string_view value = trim(*rest);
  if (std::string_view number = value; value.ends_with('.')) {
    int64_t ignored = 0;
    if (readNumber(number, ignored) && number == ".") value.remove_suffix(1);
  }
  keepVariable(name, value, log);
  return true;
}

/// "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>".
bool readHcas(std::string_view text, NcclLog& log) {
  const auto rest = after(text, "NET/IB : Using");
  if (!rest) return false;
  std::string_view list = rest->substr(0, rest->find(';'));
  while (true) {
    const auto next = after(list, "[");
    if (!next) return true;
    list = *next;
    int index = 0;
    if (!readNumber(list, index) || !list.starts_with(']')) continue;  // "[RO]"
    list.remove_prefix(1);
    const std::string_view entry = untilAny(list, " ");
    const size_t colon = entry.rfind(':');
    const size_t slash = entry.rfind('/');
    if (colon == std::string_view::npos || slash == std::string_view::npos || slash < colon) continue;
    NcclLog::Hca hca;
    hca.name = printable(entry.substr(0, colon), kLongestPath);
    hca.kind = printable(entry.substr(slash + 1), 16);
    std::string_view port = entry.substr(colon + 1, slash - colon - 1);
    if (!readNumber(port, hca.port)) continue;
    if (log.hcas.size() < NcclLogReader::kMostEntries) log.hcas[index] = hca;
  }
}

/// "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/3/GDRDMA"; "CollNet 00/0 : 0 [send] via COLLNET/SHARP/0".
bool readConnection(std::string_view text, NcclLog& log) {
  if (!text.starts_with("Channel ") && !text.starts_with("CollNet ")) return false;
  const auto way = after(text, " via ");
  if (!way) return text.starts_with("Channel ");  // "Channel 00/24 : 0 1 2 3": a ring's order
  const std::string path = printable(trim(*way), kLongestPath);
  if (log.connections.size() < NcclLogReader::kMostEntries || log.connections.count(path) > 0)
    ++log.connections[path];
  return true;
}

/// "Pattern 4, crossNic 0, nChannels 12, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1".
bool readGraph(std::string_view text, NcclLog& log) {
  if (!text.starts_with("Pattern ")) return false;
  NcclLog::Graph graph;
  std::string_view pattern = text.substr(8);
  const auto channels = after(text, "nChannels ");
  const auto type = after(text, "type ");
  if (!readNumber(pattern, graph.pattern) || !channels || !type) return false;
  std::string_view count = *channels;
  if (!readNumber(count, graph.channels)) return false;
  graph.inside = printable(untilAny(*type, "/,"), 8);
  if (const auto between = after(*type, "/")) graph.between = printable(untilAny(*between, ", "), 8);
  if (log.graphs.size() < NcclLogReader::kMostEntries) log.graphs.push_back(graph);
  return true;
}

/// "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer".
bool readChannels(std::string_view text, NcclLog& log) {
  const auto rest = after(text, " coll channels, ");
  if (!rest) return false;
  std::string_view all = text;
  readNumber(all, log.channels);
  if (const size_t at = rest->find(" nvls channels"); at != std::string_view::npos) {
    std::string_view number = rest->substr(0, at);
    number.remove_prefix(number.rfind(' ') + 1);
    readNumber(number, log.nvlsChannels);
  }
  return true;
}

/// "comm 0x55 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 1".
bool readMnnvl(std::string_view text, NcclLog& log) {
  const auto value = after(text, " MNNVL ");
  if (!text.starts_with("comm ") || !value) return false;
  log.mnnvl = log.mnnvl || !value->starts_with('0');
  return true;
}

bool readNvls(std::string_view text, NcclLog& log) {
  const auto rest = after(text, "NVLS multicast support is ");
  if (!rest) return false;
  log.nvls = log.nvls || rest->starts_with("available");
  return true;
}

bool readNames(std::string_view text, NcclLog& log) {
  if (const auto version = after(text, "NCCL version "))
    log.version = printable(untilAny(*version, " "), 64);
  else if (const auto network = after(text, "Using network "))
    log.network = printable(trim(*network), 64);
  else
    return false;
  return true;
}

}  // namespace

bool NcclLogReader::readInfo(std::string_view text) {
  for (auto* read :
       {readEnvironment, readConnection, readGraph, readHcas, readChannels, readMnnvl, readNvls, readNames})
    if (read(text, log_)) return true;
  return false;
}

void NcclLogReader::readLine(std::string_view line) {
  ++log_.lines;
  if (const auto warning = after(line, "NCCL WARN ")) {
    log_.warnings.push_back(printable(trim(*warning)));
    if (log_.warnings.size() > kMostWarnings) log_.warnings.erase(log_.warnings.begin());
    return;
  }
  const auto info = after(line, "NCCL INFO ");
  // The version is said without the prefix at the level VERSION.
  if (!readInfo(trim(info ? *info : line))) ++log_.unread;
}

void NcclLogReader::feed(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    const size_t room = kLongestLine - open_.size();
    open_.append(piece.substr(0, room));
    if (end == std::string_view::npos) return;
    readLine(open_);
    open_.clear();
    text.remove_prefix(end + 1);
  }
}

}  // namespace muster::cuda
