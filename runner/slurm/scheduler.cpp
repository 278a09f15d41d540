// SPDX-License-Identifier: Apache-2.0
// See scheduler.h.
#include "runner/slurm/scheduler.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <tuple>

#include "runner/core/text.h"
#include "runner/slurm/command.h"

namespace muster::slurm {
namespace {

constexpr double kPatience = 120;  // seconds; a busy controller answers late, its own timeout is 10 to 100 s

/// Whether a tool says that nobody answered it: the controller restarts, or is overloaded.
bool saysUnreachable(const std::string& said) {
  for (const char* phrase :
       {"Unable to contact slurm controller", "Socket timed out", "Zero Bytes were transmitted",
        "temporarily unable to accept job", "Connection refused"})
    if (said.find(phrase) != std::string::npos) return true;
  return false;
}

/// What a tool complained of as one line: its lines, one after the other.
std::string oneLine(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  return printable(join(lines, "; "), 600);
}

/// What a tool printed, or an Error that quotes its complaint. kTimeout when no controller answered.
Result<std::string> answer(const std::vector<std::string>& argv,
                           const std::vector<std::string>& without = {}) {
  MUSTER_TRY(const CommandResult result, runCommand(argv, kPatience, without));
  if (result.exitCode == 0) return result.out;
  const std::string said = oneLine(trim(result.err).empty() ? result.out : result.err);
  if (saysUnreachable(said))
    return Error{
        ErrorCode::kTimeout,
        fmt::format(
            "Slurm's controller does not answer `{}`: {}; see `scontrol ping`, and try again when it is up",
            argv.front(), said),
        ""};
  return Error{ErrorCode::kUsage,
               fmt::format("`{}` ended with {}: {}", printable(join(argv, " "), 200),
                           result.signal != 0 ? fmt::format("signal {}", result.signal)
                                              : std::to_string(result.exitCode),
                           said.empty() ? "it said nothing; is the controller up (scontrol ping)?" : said),
               ""};
}

/// The text before each of `count - 1` bars, and all the rest: only the last field may hold bars itself.
std::vector<std::string> fields(const std::string& line, size_t count) {
  std::vector<std::string> all;
  size_t begin = 0;
  while (all.size() + 1 < count) {
    const size_t bar = line.find('|', begin);
    if (bar == std::string::npos) return {};
    all.push_back(line.substr(begin, bar - begin));
    begin = bar + 1;
  }
  all.push_back(line.substr(begin));
  return all;
}

bool isNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

template <typename T>
bool readNumber(const std::string& text, T& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && failure == std::errc() && end == text.data() + text.size();
}

/// The exit code that a shell would show for a job's end: "1:0" (code and signal), or wait(2)'s status, as
/// the squeue of some versions has it.
bool readExitCode(const std::string& text, int& code) {
  const size_t colon = text.find(':');
  int signal = 0, status = 0;
  if (colon == std::string::npos) {
    if (!readNumber(text, status) || status < 0) return false;
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }
  if (!readNumber(text.substr(0, colon), code) || !readNumber(text.substr(colon + 1), signal)) return false;
  if (signal != 0) code = 128 + signal;
  return code >= 0;
}

/// Exit code and user of every job, by its own number. The short formats of squeue have no exit code.
Result<std::map<std::string, std::pair<int, int64_t>>> readEnds() {
  constexpr size_t kWidth = 20;  // of each column: what is longer is cut, what is shorter filled
  MUSTER_TRY(const std::string text,
             answer({"squeue", "--noheader", "--all", "--array", "--states=all",
                     fmt::format("--Format=JobID:.{0},exit_code:.{0},UserID:.{0}", kWidth)}));
  std::map<std::string, std::pair<int, int64_t>> ends;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const std::string number(trim(line.substr(0, kWidth)));
    int64_t user = -1;
    int code = -1;
    if (line.size() < 3 * kWidth || !isNumber(number) ||
        !readExitCode(std::string(trim(line.substr(kWidth, kWidth))), code) ||
        !readNumber(std::string(trim(line.substr(2 * kWidth))), user))
      return Error{
          ErrorCode::kProtocol,
          fmt::format("squeue printed \"{}\", wanted JobID, exit_code and UserID", printable(line, 120)), ""};
    ends[number] = {code, user};
  }
  return ends;
}

/// "drained*" without its marks, in lower case.
std::string plainState(const std::string& state) {
  std::string plain;
  for (const char c : state)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

bool startsWith(const std::string& text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

}  // namespace

bool NodeInfo::drained() const {
  const std::string plain = plainState(state);
  return startsWith(plain, "drain") || plain == "drng";
}

bool NodeInfo::available() const {
  const std::string plain = plainState(state);
  for (const char* bad : {"down", "fail", "error", "inval", "unk", "future", "no_respond", "not_responding"})
    if (startsWith(plain, bad)) return false;
  return !drained() && state.find('*') == std::string::npos;
}

bool NodeInfo::unknown() const {
  return startsWith(plainState(state), "unk");
}

std::string NodeInfo::text() const {
  if (reason.empty()) return printable(state, 40);
  return fmt::format("{}: {} [{}]", printable(state, 40), printable(reason, 200), printable(user, 40));
}

bool JobInfo::live() const {
  static constexpr std::array<std::string_view, 10> kLive = {
      "PENDING",  "RUNNING",   "SUSPENDED", "COMPLETING", "CONFIGURING",
      "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED",    "REQUEUED"};
  return std::find(kLive.begin(), kLive.end(), state) != kLive.end();
}

int gpusOf(const std::string& gres) {
  int sum = 0;
  std::string flat;  // without what stands in brackets, which may hold commas
  int depth = 0;
  for (const char c : gres) {
    depth += c == '(' ? 1 : 0;
    if (depth == 0) flat += c;
    depth -= c == ')' ? 1 : 0;
  }
  for (const std::string& item : split(flat, ',')) {
    const auto parts = split(item, ':');
    if (parts.empty() || parts.front() != "gpu") continue;
    int count = 1;
    const std::string& last = parts.back();
    const auto [end, failure] = std::from_chars(last.data(), last.data() + last.size(), count);
    sum += failure == std::errc() && end == last.data() + last.size() ? count : 1;
  }
  return sum;
}

Result<NodeInfo> parseNodeLine(const std::string& line) {
  const auto parts = fields(line, 5);
  if (parts.empty() || !isPlainName(parts[0]) || parts[1].empty())
    return Error{
        ErrorCode::kProtocol,
        fmt::format("sinfo printed \"{}\", wanted NODE|STATE|GRES|USER|REASON", printable(line, 120)), ""};
  NodeInfo node{parts[0], parts[1], parts[3], parts[4], gpusOf(parts[2])};
  if (node.reason == "none") node.reason.clear();
  return node;
}

Result<Nodes> readNodes(const std::string& partition) {
  std::vector<std::string> argv = {"sinfo", "--noheader", "--Node", "--format=%N|%T|%G|%u|%E"};
  argv.push_back(partition.empty() ? "--all" : "--partition=" + partition);  // sinfo takes one or the other
  MUSTER_TRY(const std::string text, answer(argv));
  Nodes nodes;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    MUSTER_TRY(NodeInfo node, parseNodeLine(line));
    nodes.insert_or_assign(node.name, std::move(node));  // a node of two partitions is shown twice
  }
  if (nodes.empty())
    return Error{ErrorCode::kUsage,
                 partition.empty() ? "Slurm knows no node; see `sinfo`"
                                   : fmt::format("partition \"{}\" has no node; `sinfo` lists partitions",
                                                 printable(partition, 80)),
                 ""};
  return nodes;
}

Result<std::vector<JobInfo>> readJobs() {
  // Asked for numbers, squeue fails on those that it has forgotten: so all are read.
  MUSTER_TRY(const std::string text, answer({"squeue", "--noheader", "--all", "--array", "--states=all",
                                             "--format=%F|%A|%i|%T|%N|%r|%k"}));
  std::vector<JobInfo> all;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const auto parts = fields(line, 7);
    if (parts.empty())
      return Error{ErrorCode::kProtocol,
                   fmt::format("squeue printed \"{}\", wanted seven fields", printable(line, 120)), ""};
    all.push_back({parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]});
  }
  return all;
}

Status addEnds(std::vector<JobInfo>& jobs) {
  MUSTER_TRY(const auto ends, readEnds());
  for (JobInfo& job : jobs)
    if (const auto end = ends.find(job.number); end != ends.end())
      std::tie(job.exitCode, job.user) = end->second;
  return {};
}

Result<JobInfo> parseAccountedLine(const std::string& line) {
  const auto parts = fields(line, 7);
  JobInfo job;
  if (parts.empty() || !isNumber(parts[0]) || !readNumber(parts[2], job.user) ||
      parts[4].find(':') == std::string::npos || !readExitCode(parts[4], job.exitCode))
    return Error{
        ErrorCode::kProtocol,
        fmt::format("sacct printed \"{}\", wanted JobIDRaw|JobID|UID|State|ExitCode|NodeList|Comment",
                    printable(line, 120)),
        ""};
  job.number = parts[0];
  job.id = parts[1];
  job.job = parts[1].substr(0, parts[1].find_first_of("_+."));
  job.state = parts[3].substr(0, parts[3].find(' '));  // "CANCELLED by 0"
  job.nodes = parts[5];
  job.comment = parts[6];
  return job;
}

Result<std::vector<JobInfo>> readAccountedJobs(const std::set<std::string>& jobs) {
  std::vector<JobInfo> all;
  if (jobs.empty()) return all;
  const auto text = answer({"sacct", "--noheader", "--parsable2", "--allocations", "--array",
                            "--format=JobIDRaw,JobID,UID,State,ExitCode,NodeList,Comment",
                            "--jobs=" + join(std::vector<std::string>(jobs.begin(), jobs.end()), ",")});
  // Most often there is no accounting, which sacct calls a failure.
  if (!text.ok()) return all;
  for (const std::string& line : split(*text, '\n')) {
    if (trim(line).empty()) continue;
    MUSTER_TRY(JobInfo job, parseAccountedLine(line));
    all.push_back(std::move(job));
  }
  return all;
}

Result<std::vector<JobInfo>> readJobs(const std::set<std::string>& jobs) {
  MUSTER_TRY(std::vector<JobInfo> found, readJobs());
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const JobInfo& job) { return jobs.count(job.job) == 0; }),
              found.end());
  return found;
}

Result<std::map<std::string, std::string>> readConfiguration() {
  MUSTER_TRY(const std::string text, answer({"scontrol", "show", "config"}));
  std::map<std::string, std::string> values;
  for (const std::string& line : split(text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    values.emplace(trim(std::string_view(line).substr(0, equals)),
                   trim(std::string_view(line).substr(equals + 1)));
  }
  return values;
}

Result<std::string> readAssociations() {
  return answer({"scontrol", "show", "assoc_mgr", "flags=assoc,qos"});
}

Result<std::string> submit(const std::string& script, const std::vector<std::string>& options) {
  std::vector<std::string> argv = {"sbatch", "--parsable"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back(script);
  // What a surrounding job left behind (SLURM_*) would be inherited as if it were this job's own.
  MUSTER_TRY(const std::string text,
             answer(argv, {"SBATCH_", "SLURM_JOB", "SLURM_ARRAY", "SLURM_STEP", "SLURM_NTASKS",
                           "SLURM_NNODES", "SLURM_NODELIST", "SLURM_MEM", "SLURM_CPUS", "SLURM_TASKS",
                           "SLURM_GPUS", "SLURM_TRES", "SLURMD_NODENAME"}));
  const std::string job(trim(text.substr(0, text.find(';'))));
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    return Error{ErrorCode::kProtocol,
                 fmt::format("sbatch printed \"{}\", wanted a job's number", printable(text, 120)), script};
  return job;
}

Status cancel(const std::set<std::string>& jobs) {
  if (jobs.empty()) return {};
  std::vector<std::string> argv = {"scancel", "--quiet"};
  argv.insert(argv.end(), jobs.begin(), jobs.end());
  MUSTER_TRY(const std::string said, answer(argv));
  return {};
}

Status drain(const std::string& node, const std::string& reason) {
  MUSTER_TRY(const std::string said,
             answer({"scontrol", "update", "NodeName=" + node, "State=DRAIN", "Reason=" + reason}));
  return {};
}

Status resume(const std::string& node) {
  MUSTER_TRY(const std::string said, answer({"scontrol", "update", "NodeName=" + node, "State=RESUME"}));
  return {};
}

}  // namespace muster::slurm
