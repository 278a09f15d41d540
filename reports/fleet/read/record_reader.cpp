// SPDX-License-Identifier: Apache-2.0
// See record_stream.h: one record from its bytes to a summary.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>

#include "reports/fleet/read/inventory_reader.h"
#include "reports/fleet/read/parameter_reader.h"
#include "reports/fleet/read/record_stream.h"
#include "reports/fleet/read/stage_reader.h"
#include "reports/fleet/read/waived_record.h"
#include "runner/core/units.h"
#include "runner/record/record.h"
#include "runner/record/record_check.h"
#include "runner/record/record_mac.h"
#include "runner/system/files.h"

namespace muster::fleet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFaultBytes = 200;
constexpr size_t kMostReasons = 8;
constexpr size_t kMostOverrides = 1'000;
constexpr size_t kMostRejudged = 1'000;
constexpr size_t kDeepestJson = 64;
constexpr size_t kTextFileBytes = 1u << 20;
constexpr size_t kShortText = 64u << 10;
constexpr size_t kMostLongTexts = 64;
constexpr size_t kMostTexts = 1'000;
/// Only one record above this is parsed at a time: a hostile one may need fifteen times its size.
constexpr size_t kLarge = 6u << 20;
std::mutex oneLargeRecord;

Error damaged(const std::string& message) {
  return {ErrorCode::kProtocol, message, ""};
}

/// Finds out where JSON ends to be JSON; asked only once it is known to be none.
struct FaultFinder : nlohmann::json_sax<nlohmann::json> {
  std::string fault;
  size_t at = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    at = position;
    fault = fmt::format("at byte {}, \"{}\"", position,
                        printable(token.substr(token.size() > 40 ? token.size() - 40 : 0), 60));
    return false;
  }
};

Error torn(const std::string& message) {
  return {ErrorCode::kCorrupt, message, ""};
}

Error notJson(std::string_view text, simdjson::error_code error) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return torn("truncated: the file is empty");
  if (error == simdjson::DEPTH_ERROR) return torn(fmt::format("more than {} levels deep", kDeepestJson));
  if (error == simdjson::UTF8_ERROR) return torn("damaged: not valid UTF-8");
  FaultFinder finder;
  nlohmann::json::sax_parse(text.begin(), text.end(), &finder);
  // nlohmann counts the end of the text as one byte more. A text cut off may well end in a closing brace.
  if (finder.at > text.size() || text[last] != '}')
    return torn(fmt::format("truncated: the JSON ends after {} bytes", text.size()));
  const bool isNaN = text.substr(finder.at < 4 ? 0 : finder.at - 4, 8).find("NaN") != std::string_view::npos;
  return torn(fmt::format("damaged: invalid JSON {}{}", finder.fault, isNaN ? " (JSON has no NaN)" : ""));
}

std::string textIn(Fields& fields, std::string_view key) {
  return bounded(fields.text(key), kFaultBytes);
}

}  // namespace

class RecordReader::Impl {
 public:
  Impl(FleetNames& names, const ReadLimits& limits, RecordOrigin origin)
      : names_(names), limits_(limits), origin_(std::move(origin)), stages_(names, limits, failures_) {}

  Result<NodeSummary> read(const fs::path& path, const fs::path& directory) {
    lastNode_.clear();
    MUSTER_CHECK_OK(load(path, directory));
    return guarded();
  }

  Result<NodeSummary> parse(std::string_view text) {
    lastNode_.clear();
    if (text.size() > limits_.bytes) return tooLarge(text.size());
    reserve(text.size());
    std::copy(text.begin(), text.end(), buffer_.begin());
    size_ = text.size();
    return guarded();
  }

  void setOrigin(RecordOrigin origin) { origin_ = std::move(origin); }
  void keepSpreads() {
    parameters_ = true;
    stages_.keepSpreads();
  }

  std::string lastNode_;

 private:
  [[nodiscard]] Error tooLarge(uint64_t size) const {
    return damaged(fmt::format("{} long; a record of more than {} is not read",
                               formatQuantity(static_cast<double>(size), "B"),
                               formatQuantity(static_cast<double>(limits_.bytes), "B")));
  }

  void reserve(size_t size) {
    if (buffer_.size() < size + simdjson::SIMDJSON_PADDING) buffer_.resize(size + simdjson::SIMDJSON_PADDING);
  }

  Status load(const fs::path& path, const fs::path& directory) {
    // Not blocking and not following links: a pipe must not hold up the fleet, nor a link lead out of it.
    const auto fd = openFound(path, directory);
    if (!fd.ok()) return damaged(fd.error().message);
    struct stat info {};
    if (fstat(fd->get(), &info) != 0) return damaged("cannot read it: " + errnoText(errno));
    if (origin_.owner && info.st_uid != *origin_.owner)
      return damaged(
          fmt::format("it belongs to user {}, but the run to user {}", info.st_uid, *origin_.owner));
    if (origin_.owner && info.st_nlink > 1)
      return damaged(fmt::format("it has {} hard links; a run writes a file with one", info.st_nlink));
    const auto bytes = static_cast<uint64_t>(info.st_size);
    if (bytes > limits_.bytes) return tooLarge(bytes);
    reserve(bytes + 1);  // one more, to see that it does not grow meanwhile
    for (size_ = 0; size_ <= bytes;) {
      const ssize_t n = ::read(fd->get(), buffer_.data() + size_, bytes + 1 - size_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return damaged("cannot read it: " + errnoText(errno));
      if (n == 0) return {};
      size_ += static_cast<size_t>(n);
    }
    return damaged("it changed while being read; read it again after its run has ended");
  }

  /// A large record is read alone, and its memory is given back.
  Result<NodeSummary> guarded() {
    if (size_ <= kLarge) return parseBuffer();
    const std::lock_guard alone(oneLargeRecord);
    auto result = parseBuffer();
    parser_ = dom::parser();
    allocated_ = 0;
    std::vector<char>().swap(buffer_);
    return result;
  }

  Result<NodeSummary> parseBuffer() {
    failures_.clear();
    planText_ = profileText_ = {};
    if (size_ > allocated_) {
      allocated_ = std::max<size_t>(size_, 1u << 20);
      if (parser_.allocate(allocated_, kDeepestJson) != simdjson::SUCCESS) {
        allocated_ = 0;
        return damaged("there is not enough memory to read it");
      }
    }
    const std::string_view text(buffer_.data(), size_);
    dom::element root;
    if (const auto error = parser_.parse(buffer_.data(), size_, false).get(root); error != simdjson::SUCCESS)
      return notJson(text, error);
    dom::object record;
    if (root.get(record) != simdjson::SUCCESS) return damaged("not a record: its JSON is not an object");
    if (int64_t schema = 0; record["schema"].get(schema) != simdjson::SUCCESS)
      return damaged("no record: it has no schema version");
    else if (schema != kRecordSchema)
      return damaged(fmt::format("a record of schema {}, written by {} Muster; this one reads schema {}",
                                 schema, schema < kRecordSchema ? "an older" : "another", kRecordSchema));
    NodeSummary node;
    node.sha256 = sha256Hex(text);
    MUSTER_CHECK_OK(readHead(record, text, node));
    readRecord(record, node);
    if (!failures_.ok()) return failures_.error();
    MUSTER_CHECK_OK(check(node));
    readOwnWaivers(record, names_, node, failures_);
    if (!failures_.ok()) return failures_.error();
    decideWaived(node, stages_.flakyAllowed());
    // What a partial run failed counts against its node; what it passed says nothing for it.
    if (node.acceptance == Acceptance::kPartial)
      return damaged("it does not count as a run of the node: " + node.partial);
    keepText(names_.plans, planText_, node.planSha256);
    if (hasDigest(profileText_, node.profileSha256, names_.profiles))
      keepText(names_.profiles, profileText_, node.profileSha256);
    return node;
  }

  /// Whose record it is, and whether its node wrote it: before anything that rows share is unfolded.
  Status readHead(const dom::object& record, std::string_view text, NodeSummary& node) {
    Fields fields(record, failures_);
    // Before its node is known: it says nothing of a node's own run, neither for nor against it.
    if (fields.has("imported"))
      return damaged("it was made by `muster import`: other tools' results do not count as a node's run");
    if (const dom::object run = fields.object("run"); failures_.ok()) readRun(run, node);
    if (failures_.ok() && node.backend == kImportedBackend)
      failures_.fail("run.backend", "is that of imported results, whose files are not named");
    if (!failures_.ok()) return failures_.error();
    if (fields.has("redacted")) {
      Fields part(fields.object("redacted"), failures_);
      node.redactedFrom = textIn(part, "from_sha256");
      if (!failures_.ok()) return failures_.error();
      if (!origin_.runKey.empty())
        return damaged(
            "it is redacted and so has no MAC: only the original record can be checked by the key");
    }
    return origin_.runKey.empty() ? Status() : checkMac(text, nodeKeyOf(origin_.runKey, node.node));
  }

  void readRecord(const dom::object& record, NodeSummary& node) {
    Fields fields(record, failures_);
    stages_.begin(node);
    stages_.noteWaivers(record);
    failures_.at("");
    readOutcome(fields, node);
    if (const dom::object accounting = fields.object("accounting"); failures_.ok())
      readAccounting(accounting, node.accounting);
    failures_.at("");
    if (const dom::object plan = fields.object("plan"); failures_.ok()) {
      Fields part(plan, failures_);
      node.planName = textIn(part, "name");
      node.planSha256 = textIn(part, "sha256");
      planText_ = part.text("text");
      if (!hasDigest(planText_, node.planSha256, names_.plans))
        failures_.fail("plan.text", "edited or truncated: its digest differs from plan.sha256");
    }
    if (const dom::object profile = fields.object("profile"); failures_.ok()) {
      Fields part(profile, failures_);
      node.profileName = textIn(part, "name");
      node.profileSha256 = textIn(part, "sha256");
      profileText_ = part.text("text");
    }
    if (const dom::object tool = fields.object("tool"); failures_.ok()) {
      Fields part(tool, failures_);
      node.toolVersion = bounded(part.text("version"), kFaultBytes);
      node.buildId = textIn(part, "build_id");
      readBinaries(part, node);
    }
    if (fields.has("rejudged")) readRejudged(fields, node);
    if (const dom::object launcher = fields.object("launcher"); failures_.ok())
      if (std::string_view id; launcher.at_key("fleet_id").get(id) == simdjson::SUCCESS)
        node.fleetId = bounded(id, kFaultBytes);
    if (const dom::object environment = fields.object("environment"); failures_.ok())
      if (std::string_view job; environment.at_key("SLURM_JOB_ID").get(job) == simdjson::SUCCESS)
        node.jobId = bounded(job, kFaultBytes);
    if (const dom::object inventory = fields.object("inventory"); failures_.ok())
      readInventory(inventory, node, stages_, limits_, failures_);
    readStages(fields, node);
  }

  void readRejudged(Fields& fields, NodeSummary& node) {
    failures_.at("rejudged");
    node.rejudged.emplace();
    for (const dom::element item : fields.array("rejudged")) {
      dom::object object;
      if (item.get(object) != simdjson::SUCCESS)
        return failures_.fail("", "has an entry that is not an object");
      if (node.rejudged->from.size() >= kMostRejudged)
        return failures_.fail("", fmt::format("holds more than {}", kMostRejudged));
      Fields part(object, failures_);
      node.rejudged->from.push_back(textIn(part, "from_sha256"));
      node.rejudged->at = part.seconds("at");
      node.rejudged->buildId = textIn(part, "build_id");
      if (std::string profile = textIn(part, "profile_sha256"); !profile.empty())
        node.rejudged->profileSha256 = std::move(profile);
      if (!failures_.ok()) return;
    }
    if (node.rejudged->from.empty()) failures_.fail("", "is empty");
    failures_.at("");
  }

  /// Whether a text has this digest: equal to the one that is known by it, or found to have it.
  static bool hasDigest(std::string_view text, const std::string& sha256, const Table<std::string>& known) {
    const std::string* same = known.find(sha256);
    return same != nullptr ? text == *same : sha256Hex(text) == sha256;
  }

  /// Each plan's and profile's text once: thousands of records hold the same. Only of a record that can be
  /// used: the first text with a digest is everybody's.
  static void keepText(Table<std::string>& table, std::string_view text, const std::string& sha256) {
    const size_t most = text.size() > kShortText ? kMostLongTexts : kMostTexts;
    if (!sha256.empty() && text.size() <= kTextFileBytes && table.size() < most)
      table.number(sha256, [&] { return std::string(text); });
  }

  void readRun(const dom::object& run, NodeSummary& node) {
    failures_.at("run");
    Fields fields(run, failures_);
    const std::string_view name = fields.text("node");
    if (failures_.ok() && !isPlainName(name))
      failures_.fail("node",
                     fmt::format("\"{}\" is not a node name: expected letters, digits, '-', '_' and '.'",
                                 printable(name, 80)));
    if (!failures_.ok()) return;
    node.node = lastNode_ = std::string(name);
    node.runId = textIn(fields, "id");
    node.nodeRank = fields.count("node_rank");
    node.nodeCount = fields.count("node_count");
    node.started = fields.seconds("started");
    node.finished = std::max(node.started, fields.seconds("finished"));  // a clock may be set back
    node.backend = textIn(fields, "backend");
    node.bootId = textIn(fields, "boot_id");
    node.strict = fields.flag("strict");
    if (fields.has("selection")) readSelection(fields, node);
    if (!failures_.ok()) return;
    node.resumed = fields.count("resumed");
    node.allowUnknownSku = fields.flag("allow_unknown_sku");
    node.overrides = textsIn(fields, "overrides");
  }

  void readSelection(Fields& fields, NodeSummary& node) {
    Fields part(fields.object("selection"), failures_);
    if (!failures_.ok()) return;
    const Selection selection = {textsIn(part, "stages"), textsIn(part, "devices")};
    if (failures_.ok() && !selection.partial())
      failures_.fail("selection", "names neither stages nor devices");
    node.partial = bounded(selection.text(), kFaultBytes);
  }

  void readBinaries(Fields& tool, NodeSummary& node) {
    std::string lines;
    if (tool.has("binaries")) {
      const dom::object binaries = tool.object("binaries");
      if (!failures_.ok()) return;
      Fields files(binaries, failures_);
      for (const auto& [file, value] : binaries)
        lines += bounded(file, kFaultBytes) + " " + textIn(files, file) + "\n";
    }
    node.binaries = names_.text(lines);
  }

  std::vector<std::string> textsIn(Fields& fields, std::string_view key) {
    std::vector<std::string> texts;
    for (const dom::element item : fields.array(key)) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) failures_.fail(key, "must be texts");
      if (texts.size() >= kMostOverrides)
        failures_.fail(key, fmt::format("holds more than {}", kMostOverrides));
      if (!failures_.ok()) break;
      texts.push_back(bounded(text, kFaultBytes));
    }
    return texts;
  }

  void readOutcome(Fields& fields, NodeSummary& node) {
    node.acceptance = fields.named<Acceptance>("acceptance");
    node.exitCode = fields.count("exit_code");
    node.simulated = fields.flag("simulated");
    node.scenario = textIn(fields, "scenario");
    for (const dom::element item : fields.array("reasons")) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) failures_.fail("reasons", "must be texts");
      if (node.reasons.size() < kMostReasons) node.reasons.push_back(bounded(text, kFaultBytes));
    }
  }

  void readAccounting(const dom::object& object, Accounting& accounting) {
    failures_.at("accounting");
    Fields fields(object, failures_);
    accounting.expected = static_cast<size_t>(fields.count("expected"));
    accounting.requiredSkips = static_cast<size_t>(fields.count("required_skips"));
    const dom::object counts = fields.object("counts");
    if (!failures_.ok()) return;
    Fields each(counts, failures_);
    for (int i = 0; i < kOutcomeCount; ++i)
      accounting.counts[i] = static_cast<size_t>(each.count(outcomeName(static_cast<Outcome>(i))));
  }

  void readStages(Fields& fields, NodeSummary& node) {
    failures_.at("");
    const dom::array stages = fields.array("stages");
    for (const dom::element item : stages) {
      dom::object stage;
      if (node.stages.size() >= limits_.stages)
        failures_.fail("stages", fmt::format("the record holds more than {}", limits_.stages));
      if (item.get(stage) != simdjson::SUCCESS)
        failures_.fail("stages", "has an entry that is not an object");
      if (!failures_.ok()) return;
      stages_.read(stage, node.acceptance == Acceptance::kAccepted);
      if (failures_.ok()) checkStage(node);
      if (failures_.ok() && parameters_) readParameters(stage, node, stages_);
    }
    stages_.finish();
    node.doubtful = node.doubtful || !stages_.measuredDevices();
  }

  /// Of the stage that was read last.
  void checkStage(const NodeSummary& node) {
    const StageSummary& stage = node.stages.back();
    if (stage.state != StageState::kRan && stage.accounting.of(Outcome::kDeferred) > 0)
      failures_.fail("", "edited: it did not run, but has deferred check results");
    if (const std::string why = idleContradiction(stage.state, stage.scope, stage.groupNodes, node.nodeRank);
        !why.empty())
      failures_.fail("", "edited: " + why);
    for (size_t i = 0; i + 1 < node.stages.size(); ++i)
      if (node.stages[i].name == stage.name) failures_.fail("name", "edited: two stages have this name");
  }

  [[nodiscard]] bool hasSelectionStage(const NodeSummary& node) const {
    return std::any_of(node.stages.begin(), node.stages.end(), [&](const StageSummary& stage) {
      return names_.texts[stage.name] == kSelectionStage && stage.state == StageState::kSkipped;
    });
  }

  [[nodiscard]] bool isIdle(const NodeSummary& node) const {
    std::vector<StageState> states;
    for (const StageSummary& stage : node.stages)
      if (!isOwnStage(names_.texts[stage.name])) states.push_back(stage.state);
    return isOnlyIdle(states);
  }

  [[nodiscard]] Status check(const NodeSummary& node) const {
    const std::string why = contradictionIn(RecordClaim{.acceptance = node.acceptance,
                                                        .exitCode = node.exitCode,
                                                        .strict = node.strict,
                                                        .simulated = node.simulated,
                                                        .backend = node.backend,
                                                        .scenario = node.scenario,
                                                        .runId = node.runId,
                                                        .node = node.node,
                                                        .started = node.started,
                                                        .nodeRank = node.nodeRank,
                                                        .nodeCount = node.nodeCount,
                                                        .partial = !node.partial.empty(),
                                                        .selectionStage = hasSelectionStage(node),
                                                        .onlyIdle = isIdle(node),
                                                        .said = node.accounting,
                                                        .found = stages_.counted()});
    return why.empty() ? Status() : damaged("edited or truncated: " + why);
  }

  FleetNames& names_;
  ReadLimits limits_;
  RecordOrigin origin_;
  Failures failures_;
  StageReader stages_;
  bool parameters_ = false;  ///< they become facts
  dom::parser parser_;
  size_t allocated_ = 0;
  std::vector<char> buffer_;
  size_t size_ = 0;
  std::string_view planText_, profileText_;  ///< of the record that is read
};

RecordReader::RecordReader(FleetNames& names, const ReadLimits& limits, RecordOrigin origin)
    : impl_(std::make_unique<Impl>(names, limits, std::move(origin))) {}
RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;

Result<NodeSummary> RecordReader::read(const fs::path& path, const fs::path& directory) {
  return impl_->read(path, directory);
}

Result<NodeSummary> RecordReader::parse(std::string_view text) {
  return impl_->parse(text);
}

void RecordReader::setOrigin(RecordOrigin origin) {
  impl_->setOrigin(std::move(origin));
}

void RecordReader::keepSpreads() {
  impl_->keepSpreads();
}

const std::string& RecordReader::lastNode() const {
  return impl_->lastNode_;
}

}  // namespace muster::fleet
