// SPDX-License-Identifier: Apache-2.0
// Reads acceptance.toml. reports/README.md describes the format.
#include "reports/acceptance/acceptance_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/toml/toml_table.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr uint64_t kMaxBytes = 1ull << 20;
constexpr size_t kLongestText = 80;  ///< bytes; all of it is printed on the first page
constexpr size_t kMostOrdered = 6;
constexpr size_t kLongestShort = 40;  ///< of a narrow place
constexpr size_t kLongestDue = 20;
constexpr size_t kMostExclusions = 3;
constexpr size_t kMostOwners = 1000;

/// Reads one document; mistakes go to `complaints_`.
class Reader {
 public:
  explicit Reader(const TomlDocument& document) : complaints_(document), root_(document, "", complaints_) {}

  Result<AcceptanceDocument> read() {
    int schema = 0;
    root_.require("schema");
    if (root_.integer("schema", {}, schema) && schema != 1)
      root_.complain("schema",
                     fmt::format("this Muster reads acceptance documents of schema 1, found {}", schema));
    readDocument(root_.table("document"));
    readParties(root_.table("parties"));
    for (TomlTable& table : listed("ordered", kMostOrdered)) readOrdered(table);
    for (TomlTable& table : listed("owner", kMostOwners)) readOwner(table);
    root_.finish();
    MUSTER_CHECK_OK(complaints_.status());
    return std::move(result_);
  }

 private:
  /// A text that fits its place on the first page.
  void shortText(TomlTable& table, const char* key, std::string& out, size_t most = kLongestText) {
    if (table.text(key, out)) checkLength(table, key, out, most);
  }

  void checkLength(TomlTable& table, const char* key, const std::string& text, size_t most) {
    if (text.size() > most)
      table.complain(
          key, fmt::format("`{}` has {} bytes, at most {} fit on the first page", key, text.size(), most));
  }

  std::vector<TomlTable> listed(const char* key, size_t most) {
    std::vector<TomlTable> tables;
    if (root_.has(key)) tables = root_.tables(key);
    if (tables.size() <= most) return tables;
    root_.complain(key, fmt::format("{} entries of `{}`, at most {} are read", tables.size(), key, most));
    return {};
  }

  void readDocument(TomlTable table) {
    shortText(table, "number", result_.number);
    shortText(table, "revision", result_.revision);
    shortText(table, "contract", result_.contract, kLongestShort);
    shortText(table, "site", result_.site, kLongestShort);
    shortText(table, "scope", result_.scope);
    table.texts("exclusions", result_.exclusions);
    for (const std::string& text : result_.exclusions) checkLength(table, "exclusions", text, kLongestText);
    if (result_.exclusions.size() > kMostExclusions)
      table.complain("exclusions", fmt::format("{} exclusions, at most {} fit on the first page",
                                               result_.exclusions.size(), kMostExclusions));
    table.finish();
  }

  void readParties(TomlTable table) {
    shortText(table, "supplier", result_.supplier);
    shortText(table, "customer", result_.customer);
    shortText(table, "witness", result_.witness);
    table.finish();
  }

  void readOrdered(TomlTable& table) {
    OrderedPart part;
    table.require("part");
    shortText(table, "part", part.part, kLongestShort);
    table.integer("count", {1, 100'000}, part.count);
    shortText(table, "version", part.version, kLongestShort);
    if (table.has("count") == table.has("version"))
      table.complain("", "an ordered part needs either `count` or `version`");
    table.finish();
    result_.ordered.push_back(std::move(part));
  }

  void readOwner(TomlTable& table) {
    FindingOwner owner;
    table.require("name");
    shortText(table, "name", owner.name, kLongestShort);
    shortText(table, "due", owner.due, kLongestDue);
    table.text("node", owner.node);
    table.text("device", owner.device);
    table.text("serial", owner.serial);
    table.text("metric", owner.metric);
    table.finish();
    result_.owners.push_back(std::move(owner));
  }

  Complaints complaints_;
  TomlTable root_;
  AcceptanceDocument result_;
};

}  // namespace

const FindingOwner* AcceptanceDocument::ownerOf(const FindingSubject& subject) const {
  const auto matches = [](const std::string& wanted, const std::string& found) {
    return wanted.empty() || wanted == found;
  };
  const auto found = std::find_if(owners.begin(), owners.end(), [&](const FindingOwner& owner) {
    return matches(owner.node, subject.node) && matches(owner.device, subject.device) &&
           matches(owner.serial, subject.serial) && matches(owner.metric, subject.metric);
  });
  return found == owners.end() ? nullptr : &*found;
}

Result<AcceptanceDocument> parseAcceptanceDocument(std::string_view text, const std::string& file) {
  MUSTER_TRY(const TomlDocument parsed, TomlDocument::parse(text, file));
  MUSTER_TRY(AcceptanceDocument document, Reader(parsed).read());
  document.text = text;
  document.sha256 = sha256Hex(text);
  return document;
}

Result<AcceptanceDocument> readAcceptanceDocument(const std::filesystem::path& path) {
  auto text = readFile(path, kMaxBytes);
  if (!text.ok()) return Error{ErrorCode::kUsage, "--acceptance: " + text.error().message, path.string()};
  return parseAcceptanceDocument(*text, path.string());
}

}  // namespace muster
