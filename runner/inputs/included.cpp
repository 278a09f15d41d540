// SPDX-License-Identifier: Apache-2.0
// See included.h.
#include "runner/inputs/included.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "runner/core/encoding.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = ":included ";  ///< after the comment's first characters: path, SHA-256
constexpr std::string_view kLine = "| ";          ///< the same, before each line of an included file
constexpr size_t kLongestPath = 255;
constexpr size_t kDigestDigits = 64;

/// What the frozen text holds for one file.
std::string frozenPart(const IncludedFile& file, const std::string& comment) {
  std::string out = "\n" + comment + std::string(kHead) + file.path + " " + file.sha256;
  for (const std::string& line : split(file.text, '\n')) out += "\n" + comment + std::string(kLine) + line;
  return out;
}

/// A path of plain names, as pathOf() gives it.
bool isPathBelow(const std::string& path) {
  if (path.empty() || path.size() > kLongestPath) return false;
  const auto parts = split(path, '/');
  return std::all_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return isPlainName(part) && part.front() != '.'; });
}

}  // namespace

Result<InputText> InputText::of(const std::string& text, const fs::path& path, uint64_t limit, From from) {
  InputText input;
  input.path_ = path;
  input.comment_ = path.extension() == ".lua" ? "--" : "#";
  input.limit_ = limit;
  input.from_ = from;
  MUSTER_CHECK_OK(input.thaw(text));
  return input;
}

Status InputText::thaw(const std::string& text) {
  const std::string head = "\n" + comment_ + std::string(kHead);
  size_t at = text.find(head);
  own_ = text.substr(0, at);
  size_ = own_.size();
  wasFrozen_ = at != std::string::npos;
  const auto changed = [&](const std::string& what) {
    return Error{ErrorCode::kUsage,
                 what + "; restore the frozen text, or delete everything from its first \"" +
                     std::string(trim(head)) + "\" line on to read the included files again",
                 path_.string()};
  };
  while (at != std::string::npos) {
    const size_t next = text.find(head, at + 1);
    const std::vector<std::string> lines =
        split(text.substr(at + 1, next == std::string::npos ? next : next - at - 1), '\n');
    const std::vector<std::string> words = split(lines.front().substr(head.size() - 1), ' ');
    if (words.size() != 2 || !isPathBelow(words[0]) || words[1].size() != kDigestDigits)
      return changed(fmt::format("found \"{}\"; expected the path and SHA-256 of an included file",
                                 printable(lines.front(), 120)));
    IncludedFile file{words[0], "", words[1]};
    const std::string prefix = comment_ + std::string(kLine);
    for (size_t i = 1; i < lines.size(); ++i) {
      if (!lines[i].starts_with(prefix))
        return changed(
            fmt::format("found \"{}\" in the included file {}; expected a line that begins with \"{}\"",
                        printable(lines[i], 80), file.path, prefix));
      file.text += (i == 1 ? "" : "\n") + lines[i].substr(prefix.size());
    }
    if (lines.size() < 2 || sha256Hex(file.text) != file.sha256)
      return changed(
          fmt::format("the included file {} has another SHA-256 than its heading states", file.path));
    MUSTER_CHECK_OK(add(std::move(file)));
    at = next;
  }
  return {};
}

Status InputText::add(IncludedFile file) {
  if (files_.size() == kMostIncludes)
    return Error{
        ErrorCode::kUsage,
        fmt::format("more than {} files are included; expected at most {}", kMostIncludes, kMostIncludes),
        path_.string()};
  size_ += frozenPart(file, comment_).size();
  if (size_ > limit_)
    return Error{ErrorCode::kUsage,
                 fmt::format("with {} there are more than {} bytes in all; include less", file.path, limit_),
                 path_.string()};
  files_.push_back(std::move(file));
  return {};
}

std::string InputText::frozen() const {
  std::string text = own_;
  for (const IncludedFile& file : files_) text += frozenPart(file, comment_);
  return text;
}

std::string InputText::nameOf(const std::string& file) const {
  return file.empty() ? path_.string() : (path_.parent_path() / file).string();
}

Result<std::string> InputText::pathOf(const std::string& file, const std::string& name) {
  if (!isPathBelow(name))
    return Error{
        ErrorCode::kUsage,
        fmt::format("found \"{}\"; expected a path of plain names below the folder of this file, such as "
                    "\"site.toml\" or \"common/limits.toml\"",
                    printable(name, 80)),
        ""};
  const size_t folder = file.rfind('/');
  std::string path = (folder == std::string::npos ? "" : file.substr(0, folder + 1)) + name;
  if (path.size() > kLongestPath)
    return Error{ErrorCode::kUsage, fmt::format("the path is longer than {} bytes", kLongestPath), ""};
  return path;
}

const std::string* InputText::find(const std::string& path) const {
  const auto found =
      std::find_if(files_.begin(), files_.end(), [&](const IncludedFile& file) { return file.path == path; });
  return found == files_.end() ? nullptr : &found->text;
}

Status InputText::hold(const std::string& path, const std::string& text) {
  return add({path, text, sha256Hex(text)});
}

Result<const IncludedFile*> InputText::include(const std::string& path) {
  const auto found =
      std::find_if(files_.begin(), files_.end(), [&](const IncludedFile& file) { return file.path == path; });
  if (found != files_.end()) return &*found;
  if (!readsDisk())
    return Error{
        ErrorCode::kUsage,
        fmt::format("{} is not part of this text; only a file on disk, or a frozen text, can include others",
                    path),
        ""};
  MUSTER_TRY(std::string text, readBelow(path));
  if (const auto fault = findEncodingFault(text, path)) {
    const std::string_view before = std::string_view(text).substr(0, fault->offset);
    return Error{ErrorCode::kUsage,
                 fmt::format("{}:{}: {}", nameOf(path), std::count(before.begin(), before.end(), '\n') + 1,
                             fault->message),
                 ""};
  }
  const std::string sha256 = sha256Hex(text);
  MUSTER_CHECK_OK(add({path, std::move(text), sha256}));
  return &files_.back();
}

Result<std::string> InputText::readBelow(const std::string& path) const {
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  std::error_code error;
  const fs::path real = fs::canonical(folder / path, error);
  if (error)
    return Error{ErrorCode::kUsage,
                 fmt::format("cannot read {}: {}", (folder / path).string(), error.message()), ""};
  const fs::path top = fs::canonical(folder, error);
  const fs::path below = real.lexically_relative(top);
  if (error || below.empty() || *below.begin() == "..")
    return Error{ErrorCode::kUsage,
                 fmt::format("{} is a link to {}; expected a file below {}", (folder / path).string(),
                             printable(real.string(), 200), folder.string()),
                 ""};
  // Messages quote what stands there: the file must be no more secret than the one that includes it. Asked of
  // the file that is read, wherever a link leads by now.
  const Fd fd(open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  const std::string opened = fmt::format("/proc/self/fd/{}", fd.get());
  struct stat own {
  }, info{};
  const bool isThere =
      fd.valid() && fstat(fd.get(), &info) == 0 && fs::read_symlink(opened, error) == real && !error;
  const bool isPublic = isThere && (info.st_mode & S_IROTH) != 0;
  if (!isPublic && (!isThere || stat(path_.c_str(), &own) != 0 || own.st_uid != info.st_uid))
    return Error{ErrorCode::kUsage,
                 fmt::format("{} cannot be read, or belongs to another user than {} and not everybody may "
                             "read it",
                             real.string(), path_.string()),
                 ""};
  auto text = readFile(opened, limit_);
  if (text.ok()) return text;
  return Error{ErrorCode::kUsage,
               fmt::format("cannot read {}: {}", (folder / path).string(), text.error().message), ""};
}

}  // namespace muster
