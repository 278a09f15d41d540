// SPDX-License-Identifier: Apache-2.0
// Reads requirements.toml. reports/README.md describes the format.
#include "reports/acceptance/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runner/core/toml/toml_table.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

constexpr uint64_t kMaxRequirementsBytes = 1ull << 20;
constexpr size_t kMostClauses = 1000;
constexpr size_t kMostNames = 1000;  // of a clause

/// Reads, or describes, one document.
class RequirementsReader {
 public:
  Requirements read(TomlTable& root) {
    root.schemaVersion("requirements");
    root.text("name", result_.name);
    root.require("clause");
    std::vector<TomlTable> clauses = root.tables("clause");
    if (const Json* list = root.raw("clause"); list != nullptr && list->is_array() && list->empty())
      root.complain("clause", "it holds no clause, and would ask for nothing");
    if (clauses.size() > kMostClauses)
      root.complain("clause", fmt::format("{} clauses; at most {} are read", clauses.size(), kMostClauses));
    else
      for (TomlTable& clause : clauses) readClause(clause);
    root.finish();
    return std::move(result_);
  }

 private:
  void readClause(TomlTable& table) {
    Clause clause;
    table.require("id");
    table.text("id", clause.id);
    table.require("requirement");
    table.text("requirement", clause.requirement);
    table.text("source", clause.source);
    table.texts("stages", clause.stages);
    table.texts("metrics", clause.metrics);
    table.describeRule(schema::hasOneOf({"metrics", "stages"}));
    for (const auto& [key, names] : {std::pair{"stages", &clause.stages}, {"metrics", &clause.metrics}})
      if (names->size() > kMostNames)
        table.complain(key, fmt::format("{} names; at most {} are read", names->size(), kMostNames));
    if (clause.stages.empty() && clause.metrics.empty())
      table.complain("", "a clause needs `metrics` or `stages`: what shows that it is met");
    if (table.has("where")) readLabels(table.table("where"), clause.where);
    if (!clause.id.empty() && !ids_.insert(clause.id).second)
      table.complain("id", fmt::format("clause \"{}\" is there twice", clause.id));
    table.finish();
    result_.clauses.push_back(std::move(clause));
  }

  static void readLabels(TomlTable table, Labels& out) {
    for (const std::string& key : table.keys({{"", schema::text()}})) table.text(key.c_str(), out[key]);
    table.finish();
  }

  Requirements result_;
  std::set<std::string> ids_;
};

}  // namespace

Result<Requirements> parseRequirements(std::string_view text, const std::string& file) {
  MUSTER_TRY(const TomlDocument document, TomlDocument::parse(text, file));
  Complaints complaints(document);
  TomlTable root(document, "", complaints);
  Requirements requirements = RequirementsReader().read(root);
  MUSTER_CHECK_OK(complaints.status());
  requirements.text = text;
  requirements.sha256 = sha256Hex(text);
  return requirements;
}

Json requirementsSchema() {
  return schemaDocument("Muster requirements",
                        describeTable([](TomlTable& root) { RequirementsReader().read(root); }));
}

Result<bool> isKept(const std::filesystem::path& file) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(file, error).type();
  if (type == std::filesystem::file_type::symlink)
    return Error{ErrorCode::kUsage, "it is a symbolic link; replace it with a copy of the file",
                 file.string()};
  if (isPlanted(file))
    return Error{ErrorCode::kUsage,
                 "it belongs to another user than root, you and the owner of its directory; remove it",
                 file.string()};
  return type != std::filesystem::file_type::not_found;
}

Result<Requirements> readRequirements(const std::filesystem::path& path) {
  auto text = readFile(path, kMaxRequirementsBytes);
  if (!text.ok()) return Error{ErrorCode::kUsage, "--requirements: " + text.error().message, path.string()};
  return parseRequirements(*text, path.string());
}

}  // namespace muster
