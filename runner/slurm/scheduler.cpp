// SPDX-License-Identifier: Apache-2.0
// Runs Slurm's tools and parses their output.
#include "runner/slurm/scheduler.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "runner/core/text.h"
#include "runner/system/child_process.h"

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
Result<std::string> printedBy(ProgramSpec program) {
  const std::string called = printable(join(program.command, " "), 200);
  Result<ChildProcess> ended = runProgram(std::move(program), kPatience);
  if (!ended.ok() && ended.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, ended.error().message + "; is Slurm's client installed and in PATH?",
                 ""};
  if (!ended.ok()) return std::move(ended).error().context(called);
  const ChildProcess& tool = *ended;
  if (tool.exitCode() == 0) return tool.out();
  const std::string said = oneLine(trim(tool.err()).empty() ? tool.out() : tool.err());
  if (saysUnreachable(said))
    return Error{
        ErrorCode::kTimeout,
        fmt::format(
            "Slurm's controller does not answer `{}`: {}; see `scontrol ping`, and try again when it is up",
            tool.program().command.front(), said),
        ""};
  return Error{ErrorCode::kUsage,
               fmt::format("`{}` ended with {}: {}", called,
                           tool.signal() != 0 ? fmt::format("signal {}", tool.signal())
                                              : std::to_string(tool.exitCode()),
                           said.empty() ? "it printed nothing; is the controller up (scontrol ping)?" : said),
               ""};
}

/// The same of a tool that only asks: without variables that filter or format what it prints, and with times
/// in seconds since 1970.
Result<std::string> answer(std::vector<std::string> command) {
  return printedBy(
      {.command = std::move(command),
       .without = {"SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN"},
       .with = {"SLURM_TIME_FORMAT=%s"}});
}

/// What a tool printed of one node or job: fields that no user writes, then a text that one does.
struct Row {
  std::vector<std::string> fields;
  std::string text;
};

Error unexpected(const char* tool, const std::string& found, const char* expected) {
  return Error{ErrorCode::kProtocol,
               fmt::format("{} printed \"{}\", expected {}", tool, printable(found, 120), expected), ""};
}

/// Rows of `count` fields, each with a bar after it, a text of exactly `width` bytes and a line break. Only
/// its width says where the text ends, whatever it holds. False when this is none.
bool readRows(const std::string& all, size_t count, size_t width, std::vector<Row>& rows) {
  for (size_t at = 0; at < all.size(); at += width + 1) {
    Row row;
    for (size_t i = 0; i < count; ++i) {
      const size_t bar = all.find_first_of("|\n", at);
      if (bar == std::string::npos || all[bar] != '|') return false;
      row.fields.push_back(all.substr(at, bar - at));
      at = bar + 1;
    }
    if (all.size() - at <= width || all[at + width] != '\n') return false;
    row.text = all.substr(at, width);
    row.text.erase(row.text.find_last_not_of(' ') + 1);
    rows.push_back(std::move(row));
  }
  return true;
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

/// Exit code of every job, by its own number. The short formats of squeue have none.
Result<std::map<std::string, int>> readEnds() {
  constexpr size_t kWidth = 20;  // of each column: what is longer is cut, what is shorter filled
  MUSTER_TRY(const std::string text, answer({"squeue", "--noheader", "--all", "--array", "--states=all",
                                             fmt::format("--Format=JobID:.{0},exit_code:.{0}", kWidth)}));
  std::map<std::string, int> ends;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const std::string number(trim(line.substr(0, kWidth)));
    int code = -1;
    if (line.size() < 2 * kWidth || !isNumber(number) ||
        !readExitCode(std::string(trim(line.substr(kWidth))), code))
      return unexpected("squeue", line, "JobID and exit_code");
    ends[number] = code;
  }
  return ends;
}

/// "N/A" and "Unknown" are no time yet.
int64_t timeOf(const std::string& text) {
  int64_t time = 0;
  return readNumber(text, time) && time > 0 ? time : 0;
}

/// Tasks of an array that never began share the number, state and user of what is left of it. Nothing else
/// is listed twice.
bool mayShareNumber(const JobInfo& a, const JobInfo& b) {
  return a.id != b.id && a.job == b.job && a.state == b.state && a.user == b.user && a.nodes == b.nodes;
}

Status checkListedOnce(const std::vector<JobInfo>& jobs) {
  std::map<std::string, const JobInfo*> first;
  for (const JobInfo& job : jobs)
    if (const auto [seen, added] = first.emplace(job.number, &job);
        !added && !mayShareNumber(job, *seen->second))
      return Error{ErrorCode::kProtocol, fmt::format("Slurm lists job {} twice", job.number), ""};
  return {};
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

Result<Nodes> parseNodes(const std::string& text) {
  constexpr const char* kExpected = "NODE|STATE|GRES|USER|REASON";
  std::vector<Row> rows;
  if (!readRows(text, 4, kReasonWidth, rows)) return unexpected("sinfo", text, kExpected);
  Nodes nodes;
  for (const Row& row : rows) {
    const auto& field = row.fields;
    if (!isPlainName(field[0]) || field[1].empty()) return unexpected("sinfo", join(field, "|"), kExpected);
    NodeInfo node{field[0], field[1], field[3], printable(row.text, kReasonWidth), gpusOf(field[2])};
    if (node.reason == "none") node.reason.clear();
    nodes.insert_or_assign(node.name, std::move(node));  // a node of two partitions is shown twice
  }
  return nodes;
}

Result<Nodes> readNodes(const std::string& partition) {
  std::vector<std::string> argv = {"sinfo", "--noheader", "--Node",
                                   fmt::format("--format=%N|%T|%G|%u|%{}E", kReasonWidth)};
  argv.push_back(partition.empty() ? "--all" : "--partition=" + partition);  // sinfo takes one or the other
  MUSTER_TRY(const std::string text, answer(argv));
  MUSTER_TRY(Nodes nodes, parseNodes(text));
  if (nodes.empty())
    return Error{ErrorCode::kUsage,
                 partition.empty() ? "Slurm knows no node; see `sinfo`"
                                   : fmt::format("partition \"{}\" has no node; `sinfo` lists partitions",
                                                 printable(partition, 80)),
                 ""};
  return nodes;
}

Result<std::vector<JobInfo>> parseJobs(const std::string& text) {
  constexpr const char* kExpected = "JOB|NUMBER|ID|STATE|UID|START|END|NODES|COMMENT";
  std::vector<Row> rows;
  if (!readRows(text, 8, kCommentWidth, rows)) return unexpected("squeue", text, kExpected);
  std::vector<JobInfo> jobs;
  for (Row& row : rows) {
    const auto& field = row.fields;
    JobInfo job{field[0], field[1], field[2], field[3], field[7], std::move(row.text)};
    if (!isNumber(job.job) || !isNumber(job.number) || !readNumber(field[4], job.user))
      return unexpected("squeue", join(field, "|"), kExpected);
    job.start = timeOf(field[5]);
    job.end = timeOf(field[6]);
    if (job.comment == "(null)") job.comment.clear();
    jobs.push_back(std::move(job));
  }
  MUSTER_CHECK_OK(checkListedOnce(jobs));
  return jobs;
}

Result<std::vector<JobInfo>> readJobs() {
  // Asked for numbers, squeue fails on those that it has forgotten: so all are read.
  MUSTER_TRY(const std::string text,
             answer({"squeue", "--noheader", "--all", "--array", "--states=all",
                     fmt::format("--format=%F|%A|%i|%T|%U|%S|%e|%N|%{}k", kCommentWidth)}));
  return parseJobs(text);
}

Status addEnds(std::vector<JobInfo>& jobs) {
  MUSTER_TRY(const auto ends, readEnds());
  for (JobInfo& job : jobs)
    if (const auto end = ends.find(job.number); end != ends.end()) job.exitCode = end->second;
  return {};
}

namespace {

constexpr size_t kNumberWidth = 20;  // of sacct's column with a job's number

Result<JobInfo> parseAccountedLine(const std::string& line) {
  const auto field = split(line, '|');
  JobInfo job;
  if (field.size() != 8 || !isNumber(field[0]) || !readNumber(field[2], job.user) ||
      field[4].find(':') == std::string::npos || !readExitCode(field[4], job.exitCode))
    return unexpected("sacct", line, "JobIDRaw|JobID|UID|State|ExitCode|Start|End|NodeList");
  job.number = field[0];
  job.id = field[1];
  job.job = field[1].substr(0, field[1].find_first_of("_+."));
  job.state = field[3].substr(0, field[3].find(' '));  // "CANCELLED by 0"
  job.start = timeOf(field[5]);
  job.end = timeOf(field[6]);
  job.nodes = field[7];
  job.accounted = true;
  return job;
}

/// Comments by numbers: two columns of fixed width, each with a blank after it.
Result<std::map<std::string, std::string>> parseComments(const std::string& text) {
  constexpr size_t kRow = kNumberWidth + 1 + kCommentWidth + 2;
  std::map<std::string, std::string> comments;
  for (size_t at = 0; at < text.size(); at += kRow) {
    const std::string row = text.substr(at, kRow), number(trim(row.substr(0, kNumberWidth)));
    if (row.size() != kRow || row.back() != '\n' || !isNumber(number))
      return unexpected("sacct", row, "JobIDRaw and Comment in columns");
    comments.emplace(number, trim(row.substr(kNumberWidth)));
  }
  return comments;
}

}  // namespace

Result<std::vector<JobInfo>> parseAccountedJobs(const std::string& text, const std::string& comments) {
  MUSTER_TRY(const auto commentOf, parseComments(comments));
  std::vector<JobInfo> all;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    MUSTER_TRY(JobInfo job, parseAccountedLine(line));
    if (const auto found = commentOf.find(job.number); found != commentOf.end()) job.comment = found->second;
    all.push_back(std::move(job));
  }
  MUSTER_CHECK_OK(checkListedOnce(all));
  return all;
}

Result<std::vector<JobInfo>> readAccountedJobs(const std::set<std::string>& jobs) {
  if (jobs.empty()) return std::vector<JobInfo>();
  const auto ask = [&](const std::vector<std::string>& more) {
    std::vector<std::string> argv = {
        "sacct", "--noheader", "--allocations", "--array",
        "--jobs=" + join(std::vector<std::string>(jobs.begin(), jobs.end()), ",")};
    argv.insert(argv.end(), more.begin(), more.end());
    return answer(argv);
  };
  const auto text = ask({"--parsable2", "--format=JobIDRaw,JobID,UID,State,ExitCode,Start,End,NodeList"});
  // Most often there is no accounting, which sacct calls a failure.
  if (!text.ok()) return std::vector<JobInfo>();
  MUSTER_TRY(const std::string comments,
             ask({fmt::format("--format=JobIDRaw%{},Comment%{}", kNumberWidth, kCommentWidth)}));
  return parseAccountedJobs(*text, comments);
}

Result<std::vector<JobInfo>> readJobs(const std::set<std::string>& jobs, uid_t user) {
  MUSTER_TRY(std::vector<JobInfo> found, readJobs());
  std::erase_if(found, [&](const JobInfo& job) {
    return jobs.count(job.job) == 0 || job.user != static_cast<int64_t>(user);
  });
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
  ProgramSpec sbatch{.command = {"sbatch", "--parsable"}, .input = script};
  sbatch.command.insert(sbatch.command.end(), options.begin(), options.end());
  // What a surrounding job left behind (SLURM_*) would be inherited as if it were this job's own.
  sbatch.without = {"SBATCH_",      "SLURM_JOB",      "SLURM_ARRAY",    "SLURM_STEP", "SLURM_NTASKS",
                    "SLURM_NNODES", "SLURM_NODELIST", "SLURM_MEM",      "SLURM_CPUS", "SLURM_TASKS",
                    "SLURM_GPUS",   "SLURM_TRES",     "SLURMD_NODENAME"};
  MUSTER_TRY(const std::string text, printedBy(std::move(sbatch)));
  const std::string job(trim(text.substr(0, text.find(';'))));
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    return unexpected("sbatch", text, "a job's number");
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

Status undrain(const std::string& node) {
  // RESUME would also give back a node that is down.
  MUSTER_TRY(const std::string said, answer({"scontrol", "update", "NodeName=" + node, "State=UNDRAIN"}));
  return {};
}

}  // namespace muster::slurm
