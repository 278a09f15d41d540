// SPDX-License-Identifier: Apache-2.0
// Texts of other programs: Slurm's host lists, a rank's frames, perftest's tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/host/rdma/perftest_output.h"
#include "runner/app/stage/frame_collector.h"
#include "runner/core/text.h"
#include "runner/dispatch/frame_lines.h"
#include "runner/dispatch/frame_protocol.h"
#include "runner/hosts/host_list.h"
#include "tests/fuzz/targets.h"

namespace muster::testing {
namespace {

constexpr size_t kLongestName = 253;  // of DNS

bool isHostName(const std::string& name) {
  const bool plain = std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == ',' || c == '[' || c == ']';
  });
  return plain && !name.empty() && name.size() <= kLongestName;
}

struct Stream {
  std::vector<std::string> lines;
  bool whole = true;  ///< no line was too long
  bool torn = false;
};

Stream linesOf(const std::string& bytes, size_t chunk) {
  Stream stream;
  FrameLines lines;
  const auto take = [&](std::string_view line) { stream.lines.emplace_back(line); };
  for (size_t at = 0; at < bytes.size() && stream.whole; at += chunk)
    stream.whole = lines.feed(std::string_view(bytes).substr(at, chunk), take);
  stream.torn = lines.torn();
  return stream;
}

std::string checkLines(const std::string& bytes, const Stream& stream) {
  for (const size_t chunk : {1, 7, 4096}) {
    const Stream again = linesOf(bytes, chunk);
    if (again.lines != stream.lines || again.whole != stream.whole || again.torn != stream.torn)
      return fmt::format("the lines differ when they come in pieces of {} bytes", chunk);
  }
  std::string joined;
  for (const std::string& line : stream.lines) joined += line + "\n";
  if (stream.whole && bytes.compare(0, joined.size(), joined) != 0) return "the lines are not the input's";
  return stream.torn == (joined.size() != bytes.size()) ? "" : "a torn line is not noticed";
}

constexpr const char* kDescribe = R"({"tests": [{"name": "run", "summary": "a test", "backends": ["host"],
  "scopes": ["device"], "params": [{"name": "size", "type": "int", "default": 1, "summary": "size"}],
  "metrics": [{"name": "rate", "unit": "FLOP/s", "direction": "higher", "labels": ["size", "dtype"],
               "summary": "rate", "peak": "flops.{dtype}"},
              {"name": "note", "unit": "text", "direction": "none", "summary": "a fact"}]}]})";

/// The plugin whose frames these are, and its stage of two cases, twice each.
struct Stage {
  Stage() {
    auto json = parseJson(kDescribe);
    plugin = pluginSpecFromDescribe("toy", *json).value();
    for (const char* id : {"a", "b"}) cases.push_back({id, {{"size", 8}}, {}, {}});
    for (int repeat = 0; repeat < 2; ++repeat)
      for (const Case& c : cases) runs.push_back({&c, repeat});
  }
  PluginSpec plugin;
  std::vector<Case> cases;
  std::vector<CaseRun> runs;
};

const Stage& stage() {
  static const Stage kStage;
  return kStage;
}

/// What was collected must fit the plugin's own description.
std::string checkCollected(const FrameCollector& collector, const RankSlot& slot) {
  for (const Measurement& m : collector.measurements) {
    const bool declared =
        (m.metric == "toy.rate" && m.unit == "FLOP/s") || (m.metric == "toy.note" && m.isText());
    if (!declared || m.rank != slot.rank) return "a measurement that nobody declared: " + printable(m.metric);
  }
  if (collector.caseEnds({slot}).size() != stage().cases.size()) return "a case has no end";
  const double share = collector.fraction(1);
  return share >= 0 && share <= 1 ? "" : fmt::format("the stage is done to {}", share);
}

std::string checkProtocol(const std::vector<std::string>& lines) {
  FrameProtocol protocol;
  FrameCollector collector(stage().plugin, stage().plugin.tests.front(), stage().runs, 1);
  const RankSlot slot{3, "gpu3", Json::object()};
  for (const std::string& line : lines) {
    const Result<Json> frame = parseJson(line);
    if (!frame.ok()) return problemOfError(frame.error());
    const bool wasDone = protocol.done();
    const Status accepted = protocol.accept(*frame);
    if (!accepted.ok()) return problemOfError(accepted.error());
    if (wasDone) return "a frame is accepted after `done`";
    if (protocol.casesCancelled() > protocol.casesEnded()) return "more cases are cancelled than ended";
    collector.take(slot, *frame);
  }
  if (protocol.done() && protocol.openCase() >= 0) return "it is done inside a case";
  return checkCollected(collector, slot);
}

constexpr const char* kBandwidth =
    "---------\n RDMA_Write BW Test\n---------\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536    93000            0.00               392.10\t\t   0.046742\n---------\n";
constexpr const char* kLatency =
    "---------\n Send Latency Test\n---------\n"
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] \n"
    " 65536       10000          0.87           4.61         0.90     \t       0.91        \t0.05   \t\t0.98 "
    "  "
    " \t\t2.90\n---------\n";

}  // namespace

std::string checkHostList(const std::string& text) {
  const auto hosts = expandHostList(text);
  if (!hosts.ok())
    return hosts.error().code == ErrorCode::kUsage ? problemOfError(hosts.error())
                                                   : "a bad host list is not a usage error";
  if (hosts->empty() || hosts->size() > kMaxHosts) return fmt::format("{} hosts", hosts->size());
  for (const std::string& name : *hosts)
    if (!isHostName(name)) return "this is no host name: " + printable(name);
  const std::string plain = join(*hosts, ",");
  if (text.find('[') == std::string::npos && plain != text) return "plain names come out as others";
  if (plain.size() > (1 << 20)) return "";  // more than a list may have
  const auto again = expandHostList(plain);
  return again.ok() && *again == *hosts ? "" : "its names are no host list";
}

Samples hostListSamples() {
  return {{"gpu1", "gpu[001-003,7]-ib,login", "rack[1-2]node[01-16]", "a,b,c", "n[8-10]", "n[0-65535]",
           std::string(250, 'x') + "[1-9]"},
          {"[", "]", ",", "-", "[1-", "0-65535", "999999999", "[1,2]", "[00-99]", " ", "\n", "\xff",
           std::string(200, 'x'), "[1][1][1][1][1][1]"}};
}

std::string checkFrames(const std::string& bytes) {
  const Stream stream = linesOf(bytes, std::max<size_t>(1, bytes.size()));
  if (std::string problem = checkLines(bytes, stream); !problem.empty()) return problem;
  return checkProtocol(stream.lines);
}

Samples frameSamples() {
  const std::string begin = R"({"type":"case","case":0,"event":"begin"})"
                            "\n";
  const std::string end = R"({"type":"case","case":0,"event":"end","state":"ok","message":"","remedy":""})"
                          "\n";
  const std::string rate =
      R"({"type":"measurement","case":0,"metric":"rate","unit":"FLOP/s","labels":{"dtype":"bf16"},"samples":[1,2.5,"nan"],"time":2.5})"
      "\n";
  const std::string note =
      R"({"type":"measurement","case":0,"metric":"note","unit":"text","labels":{},"text":"x","time":0})"
      "\n";
  const std::string progress = R"({"type":"progress","case":0,"fraction":0.5,"text":"half"})"
                               "\n";
  const std::string artifact =
      R"({"type":"artifact","case":0,"name":"a.txt","media_type":"text/plain","path":"/x","bytes":7})"
      "\n";
  const std::string describe = R"({"type":"describe","name":"toy","version":"1"})"
                               "\n";
  const std::string log = R"({"type":"log","level":"info","text":"hello"})"
                          "\n";
  const std::string done = R"({"type":"done","cases":1,"virtual_end":1.5})"
                           "\n";
  const std::string fatal = R"({"type":"fatal","message":"no device"})"
                            "\n";
  return {{describe + begin + progress + rate + note + artifact + log + end + done, begin + rate + end + done,
           describe + fatal, begin + progress},
          {begin,
           end,
           rate,
           note,
           progress,
           artifact,
           log,
           done,
           fatal,
           "\n",
           "{",
           "}",
           "[",
           "]",
           "\"",
           "null",
           "true",
           "-1",
           "1e999",
           "18446744073709551615",
           "9223372036854775808",
           "\\u0000",
           "\\ud800",
           "\xff",
           "\"nan\"",
           "\"cancelled\"",
           "\"error\"",
           "\"case\":1",
           "\"case\":3",
           "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}};
}

std::string checkPerftest(const std::string& bytes) {
  if (bytes.empty()) return "";
  const bool isBandwidth = bytes[0] % 2 == 0;
  const auto figure = parsePerftest(isBandwidth ? RdmaMethod::kWriteBandwidth : RdmaMethod::kSendLatency,
                                    std::string_view(bytes).substr(1), 65536);
  const std::string words = lastWords(bytes);
  if (printable(words, words.size()) != words || words.size() > 1000)
    return "its last words are not fit to print";
  if (!figure.ok())
    return figure.error().code == ErrorCode::kProtocol ? problemOfError(figure.error())
                                                       : "a bad table is not a breach of the protocol";
  const auto good = [](double value) { return std::isfinite(value) && value > 0; };
  if (isBandwidth) return good(figure->bandwidth) ? "" : "it measured no bandwidth";
  return good(figure->latency) && good(figure->latencyP99) ? "" : "it measured no latency";
}

Samples perftestSamples() {
  return {{std::string("0") + kBandwidth, std::string("1") + kLatency},
          {"#bytes", "nan", "inf", "-0", "1e400", "1e308", "0x10", "65536", "---", "\t", "\n", "\r",
           "\x1b[31m", "\xff", kBandwidth, kLatency}};
}

}  // namespace muster::testing
