// SPDX-License-Identifier: Apache-2.0
// See toml_input.h.
#include "runner/inputs/toml_input.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "runner/core/json_schema.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr const char* kInclude = "include";

Error usage(const std::string& message, const std::string& place) {
  return {ErrorCode::kUsage, message, place};
}

/// Reads files and lays them over what they include.
class Layers {
 public:
  explicit Layers(InputText& input) : input_(input) {}

  Result<TomlDocument> document(std::string_view text, const std::string& file) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    MUSTER_TRY(TomlDocument document, TomlDocument::parse(text, input_.nameOf(file)));
    if (!file.empty()) MUSTER_CHECK_OK(checkSchema(document));
    MUSTER_TRY(const std::vector<IncludeName> names, namesOf(document));
    document.drop(kInclude);
    return over(document, names, file);
  }

  Result<TomlDocument> over(const TomlDocument& document, const std::vector<IncludeName>& names,
                            const std::string& file) {
    open_.push_back(file);
    std::optional<TomlDocument> below;
    for (const IncludeName& name : names) {
      MUSTER_TRY(std::optional<TomlDocument> next, included(file, name));
      if (!next) continue;
      if (below) {
        MUSTER_TRY(below, next->over(*below));
      } else {
        below = std::move(next);
      }
    }
    open_.pop_back();
    if (!below) return document;
    return document.over(*below);
  }

 private:
  /// The version of the format is the including file's; a file that states one states the same.
  static Status checkSchema(const TomlDocument& document) {
    const auto schema = document.root().find("schema");
    if (schema == document.root().end() || *schema == 1) return {};
    return usage(fmt::format("schema: found {}; expected 1 in an included file, or none",
                             printable(dumpJson(*schema), 60)),
                 document.place("/schema"));
  }

  static Result<std::vector<IncludeName>> namesOf(const TomlDocument& document) {
    std::vector<IncludeName> names;
    const auto list = document.root().find(kInclude);
    if (list == document.root().end()) return names;
    const std::string top = pointerTo("", kInclude);
    if (!list->is_array())
      return usage(fmt::format("include: found {}; expected a list of paths, such as [\"site.toml\"]",
                               printable(dumpJson(*list), 60)),
                   document.place(top));
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string place = document.place(pointerTo(top, std::to_string(i)));
      if (!(*list)[i].is_string())
        return usage(
            fmt::format("include: found {}; expected a path in quotes", printable(dumpJson((*list)[i]), 60)),
            place);
      names.push_back({(*list)[i].get<std::string>(), place});
    }
    return names;
  }

  /// The document of one file; nothing where it is there already.
  Result<std::optional<TomlDocument>> included(const std::string& from, const IncludeName& name) {
    const auto fail = [&](const std::string& message) { return usage("include: " + message, name.place); };
    const auto path = InputText::pathOf(from, name.path);
    if (!path.ok()) return fail(path.error().message);
    if (!path->ends_with(".toml"))
      return fail(fmt::format("found \"{}\"; expected a TOML file, .toml", printable(name.path, 80)));
    for (size_t i = 0; i < open_.size(); ++i) {
      if (open_[i] != *path) continue;
      std::string chain;
      for (; i < open_.size(); ++i) chain += open_[i] + " -> ";
      return fail(fmt::format("{} includes itself: {}{}", *path, chain, *path));
    }
    if (open_.size() > kDeepestInclude)
      return fail(fmt::format("files include each other more than {} levels deep", kDeepestInclude));
    if (!done_.insert(*path).second) return std::optional<TomlDocument>();
    const auto file = input_.include(*path);
    if (!file.ok()) return fail(file.error().message);
    MUSTER_TRY(TomlDocument document, this->document((*file)->text, *path));
    return std::optional<TomlDocument>(std::move(document));
  }

  InputText& input_;
  std::vector<std::string> open_;  ///< the files that are being read, from the outermost
  std::set<std::string> done_;
};

}  // namespace

Result<TomlDocument> readTomlInput(InputText& input) {
  return Layers(input).document(input.own(), "");
}

Result<std::string> frozenToml(const std::filesystem::path& path) {
  constexpr uint64_t kLimit = 1 << 20;
  MUSTER_TRY(const std::string text, readFile(path, kLimit));
  if (text.empty()) return usage("it is empty", path.string());
  MUSTER_TRY(InputText input, InputText::of(text, path, kLimit, InputText::From::kDisk));
  MUSTER_CHECK_OK(readTomlInput(input));
  return input.frozen();
}

Result<TomlDocument> layOver(const TomlDocument& document, const std::vector<IncludeName>& names,
                             InputText& input) {
  return Layers(input).over(document, names, "");
}

Json includeSchema() {
  Json path = {{"type", "string"}, {"pattern", "^[^/].*\\.toml$"}};
  return schema::described(schema::list(std::move(path), 0),
                           "files below this one's folder that this file is laid over");
}

namespace {

/// Takes out of the schema of a table, and of the tables in it, what must be there, and returns that.
Json takeRequired(Json& table) {
  Json required = Json::object();
  if (table.contains("allOf")) {
    const Json all = table["allOf"];
    table = all[0];
    for (size_t i = 1; i < all.size(); ++i) required["allOf"].push_back(all[i]);
  }
  if (table.contains("required")) required["required"] = table["required"];
  table.erase("required");
  if (!table.contains("properties")) return required;
  for (auto& [key, value] : table["properties"].items()) {
    const Json& own = value.is_object() && value.contains("allOf") ? value["allOf"][0] : value;
    if (!own.is_object() || own.value("type", Json()) != "object") continue;
    const Json inner = takeRequired(value);
    if (!inner.empty()) required["properties"][key] = inner;
  }
  return required;
}

}  // namespace

Json completeUnless(Json root, const std::vector<std::string>& keys) {
  const Json required = takeRequired(root);
  return {{"allOf", {root, schema::when({{"not", schema::hasOneOf(keys)}}, required)}}};
}

}  // namespace muster
