// SPDX-License-Identifier: Apache-2.0
// Keeps descriptions in one JSON file, each beside the identity of its library.
#include "runner/dispatch/description_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdlib>
#include <utility>

#include "runner/core/build_info.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kLargestCache = 16ull << 20;
/// A file changed less than this many seconds ago could change again within one tick of the file system's
/// clock, and nothing would show it.
constexpr time_t kSettled = 2;

/// $XDG_CACHE_HOME/muster/plugins.json; empty where no home is known.
fs::path cacheFile() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  fs::path base = variable("XDG_CACHE_HOME");
  if (!base.is_absolute()) base = variable("HOME") / ".cache";
  return base.is_absolute() ? base / "muster" / "plugins.json" : fs::path();
}

/// Changes with every change of the file; empty where it cannot be known for sure.
std::string identityOf(const fs::path& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return "";
  if (s.st_ctim.tv_sec + kSettled > time(nullptr)) return "";
  return fmt::format("{}:{}:{}:{}.{:09}:{}.{:09}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                     s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

/// The file's entries if it is of this host; nothing otherwise.
Json readEntries(const fs::path& file, const std::string& host) {
  const auto text = readFile(file, kLargestCache);
  Json json = text.ok() ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  const bool known = json.is_object() && json.contains("host") && json["host"] == host &&
                     json.contains("plugins") && json["plugins"].is_object();
  return known ? std::move(json["plugins"]) : Json::object();
}

}  // namespace

DescriptionCache::DescriptionCache(const fs::path& hostExecutable) : file_(cacheFile()) {
  const std::string identity = identityOf(hostExecutable);
  host_ = fmt::format("{} {}", buildId(), identity);
  if (identity.empty()) file_.clear();
  if (file_.empty()) return;
  if (const auto file = trustedPath(file_, "cache"); file.ok()) entries_ = readEntries(*file, host_);
}

const Json* DescriptionCache::find(const fs::path& library) const {
  const std::string& identity = seen_[library.string()] = identityOf(library);
  const auto entry = entries_.find(library.string());
  if (entry == entries_.end() || identity.empty() || !entry->is_object()) return nullptr;
  const auto known = entry->find("identity"), answer = entry->find("answer");
  if (known == entry->end() || *known != identity || answer == entry->end() || !answer->is_object())
    return nullptr;
  return trustedPath(library, "plugin").ok() ? &*answer : nullptr;
}

void DescriptionCache::keep(const fs::path& library, const Json& answer) {
  const std::string& identity = seen_[library.string()];
  if (identity.empty() || identity != identityOf(library)) return;
  entries_[library.string()] = {{"identity", identity}, {"answer", answer}};
  changed_ = true;
}

void DescriptionCache::save() {
  if (!changed_ || file_.empty()) return;
  // Root may be told another user's home.
  const auto base = makeOwnFolder(file_.parent_path().parent_path());
  if (!base.ok()) return;
  const fs::path own = *base / file_.parent_path().filename();
  if (mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) return;
  const auto folder = trustedPath(own, "cache");
  if (!folder.ok()) return;
  Json plugins = Json::object();
  for (const auto& [library, entry] : entries_.items())
    if (entry.is_object() && entry.contains("identity") && entry["identity"] == identityOf(library))
      plugins[library] = entry;
  // Without it the next run describes again, which is all that it is for.
  static_cast<void>(writeFileAtomically(*folder / file_.filename(),
                                        Json{{"host", host_}, {"plugins", std::move(plugins)}}.dump(),
                                        Durable::kNo));
}

}  // namespace muster
