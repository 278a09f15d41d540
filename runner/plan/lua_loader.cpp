// SPDX-License-Identifier: Apache-2.0
// A Lua plan as a document: starts the child that evaluates it and reads its message.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "runner/core/text.h"
#include "runner/plan/loader.h"
#include "runner/plan/lua/lua_plan.h"
#include "runner/plan/lua/lua_source.h"
#include "runner/system/limited_child.h"

namespace muster {
namespace {

constexpr int kDeepestMessage = 80;

/// Reads the message; anything that the child cannot have written by itself ends the reading.
class MessageReader {
 public:
  MessageReader(const std::string& file, const LuaFiles& files, Diagnostics& diagnostics)
      : files_(files), diagnostics_(diagnostics) {
    document_.file = file;
    document_.lua = true;
  }

  std::optional<PlanDocument> read(std::string_view text) {
    auto parsed = parseJson(text, kDeepestMessage);
    if (!parsed.ok() || !parsed->is_object()) return broken();
    Json message = std::move(*parsed);
    if (!readProblems(message["problems"])) return broken();
    if (!message.contains("root")) return toldAny_ ? std::nullopt : broken();
    if (!message["root"].is_object()) return broken();
    document_.root = std::move(message["root"]);
    if (!readLines(message["lines"]) || !readFunctions(message["functions"]) ||
        !readNumbers(message["numbers"]))
      return broken();
    return std::move(document_);
  }

 private:
  std::optional<PlanDocument> broken() {
    diagnostics_.error({document_.file, 0, 0},
                       "its evaluation did not return a plan; please report this as a bug in Muster");
    return std::nullopt;
  }

  static bool isPair(const Json& entry, bool (Json::*first)() const noexcept,
                     bool (Json::*second)() const noexcept) {
    return entry.is_array() && entry.size() == 2 && (entry[0].*first)() && (entry[1].*second)();
  }

  static int lineOf(const Json& value) {
    const auto line = value.get<int64_t>();
    return line > 0 && line < std::numeric_limits<int>::max() ? static_cast<int>(line) : 0;
  }

  bool readProblems(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      if (!isPair(entry, &Json::is_number_integer, &Json::is_string)) return false;
      SourcePosition at{document_.file, lineOf(entry[0]), 0};
      const std::string text = placedIn(entry[1].get<std::string>(), at);
      diagnostics_.error(at, printable(text, 600));
      toldAny_ = true;
    }
    return true;
  }

  /// A message of Lua about an included file begins with its path and line: these become its place.
  std::string placedIn(const std::string& text, SourcePosition& at) const {
    for (const auto& [path, content] : files_.texts) {
      if (!text.starts_with(path + ":")) continue;
      const char* end = text.data() + text.size();
      int line = 0;
      const auto [stop, error] = std::from_chars(text.data() + path.size() + 1, end, line);
      if (error != std::errc() || end - stop < 2 || stop[0] != ':' || stop[1] != ' ') continue;
      const auto folder = std::filesystem::path(document_.file).parent_path();
      at = {(folder / path).string(), line, 0};
      return std::string(stop + 2, end);
    }
    return text;
  }

  bool readLines(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      if (!isPair(entry, &Json::is_string, &Json::is_number_integer)) return false;
      document_.places[entry[0].get<std::string>()] = {document_.file, lineOf(entry[1]), 0};
    }
    return true;
  }

  bool readFunctions(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      if (!entry.is_string()) return false;
      document_.functions.insert(entry.get<std::string>());
    }
    return true;
  }

  /// JSON has no NaN and no infinity; they stand beside the table and are put back.
  bool readNumbers(const Json& list) {
    if (!list.is_array()) return false;
    for (const Json& entry : list) {
      double number = 0;
      if (!isPair(entry, &Json::is_string, &Json::is_string) || !numberFromJson(entry[1], number))
        return false;
      const auto pointer = entry[0].get<std::string>();
      if (!isPointer(pointer) || valueAt(document_.root, pointer) == nullptr) return false;
      document_.root[Json::json_pointer(pointer)] = number;
    }
    return true;
  }

  /// The library throws on anything else.
  static bool isPointer(const std::string& text) {
    if (!text.starts_with('/')) return false;
    for (size_t at = text.find('~'); at != std::string::npos; at = text.find('~', at + 1))
      if (at + 1 >= text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
    return true;
  }

  const LuaFiles& files_;
  Diagnostics& diagnostics_;
  PlanDocument document_;
  bool toldAny_ = false;
};

/// Follows `include "..."` from file to file.
class LuaFinder {
 public:
  explicit LuaFinder(InputText& input) : input_(input) {}

  Status follow(const std::string& file, std::string_view text) {
    open_.push_back(file);
    for (const LuaInclude& include : luaIncludes(text)) {
      const auto fail = [&](const std::string& message) {
        return Error{ErrorCode::kUsage, "include: " + message,
                     fmt::format("{}:{}", input_.nameOf(file), include.line)};
      };
      const auto path = InputText::pathOf(file, include.name);
      if (!path.ok()) return fail(path.error().message);
      if (!path->ends_with(".lua") && !path->ends_with(".toml"))
        return fail(fmt::format("found \"{}\"; expected a file .lua or .toml", printable(include.name, 80)));
      if (contains(open_, *path))
        return fail(fmt::format("{} includes itself: {} -> {}", *path,
                                join({std::find(open_.begin(), open_.end(), *path), open_.end()}, " -> "),
                                *path));
      if (open_.size() > kDeepestInclude)
        return fail(fmt::format("files include each other more than {} levels deep", kDeepestInclude));
      files.paths[{file, include.name}] = *path;
      if (path->ends_with(".toml")) {
        if (done_.insert(*path).second) toml.push_back({*path, fail("").where});
        continue;
      }
      if (!done_.insert(*path).second) continue;
      const auto read = input_.include(*path);
      if (!read.ok()) return fail(read.error().message);
      std::string_view content = (*read)->text;
      if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
      files.texts[*path] = content;
      MUSTER_CHECK_OK(follow(*path, content));
    }
    open_.pop_back();
    return {};
  }

  LuaFiles files;
  std::vector<IncludeName> toml;

 private:
  InputText& input_;
  std::vector<std::string> open_;
  std::set<std::string> done_;
};

std::string_view withoutMark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

Result<LuaFinder> findLuaFiles(InputText& input, TomlDocument& below) {
  LuaFinder finder(input);
  MUSTER_CHECK_OK(finder.follow("", withoutMark(input.own())));
  MUSTER_TRY(below, layOver(TomlDocument(), finder.toml, input));
  if (below.root().contains("stage"))
    return Error{ErrorCode::kUsage,
                 "a file that a Lua plan includes holds no [[stage]]: write stage{ ... } in Lua",
                 below.place("/stage")};
  return finder;
}

/// Lays the plan over `below`: tables merge, and what the plan says wins.
void putBelow(const TomlDocument& below, const Json& from, const std::string& pointer, Json& over,
              PlanDocument& document) {
  for (const auto& [key, value] : from.items()) {
    const std::string at = pointerTo(pointer, key);
    if (!over.contains(key)) {
      over[key] = value;
      addTomlPlaces(below, at, value, document);
    } else if (over[key].is_object() && value.is_object()) {
      putBelow(below, value, at, over[key], document);
    }
  }
}

}  // namespace

std::optional<PlanDocument> readLuaMessage(std::string_view message, const std::string& file,
                                           Diagnostics& diagnostics, const LuaFiles& files) {
  return MessageReader(file, files, diagnostics).read(message);
}

Status readLuaIncludes(InputText& input) {
  TomlDocument below;
  MUSTER_TRY(const LuaFinder finder, findLuaFiles(input, below));
  return {};
}

std::optional<PlanDocument> loadLua(InputText& input, const LuaLimits& limits, Diagnostics& diagnostics) {
  const std::string file = input.nameOf("");
  const std::string_view text = withoutMark(input.own());
  TomlDocument below;
  const auto found = findLuaFiles(input, below);
  if (!found.ok()) {
    diagnostics.error(positionFrom(found.error().where), found.error().message);
    return std::nullopt;
  }
  const LuaFiles& files = found->files;
  const ChildEnd child =
      runInChild(limits, [&](volatile int* line) { return evaluateLuaPlan(text, files, limits, line); });
  if (!child.problem.empty()) {
    diagnostics.error({file, child.line, 0}, "the plan " + child.problem);
    return std::nullopt;
  }
  auto document = readLuaMessage(child.output, file, diagnostics, files);
  if (document) putBelow(below, below.root(), "", document->root, *document);
  return document;
}

}  // namespace muster
