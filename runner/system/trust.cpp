// SPDX-License-Identifier: Apache-2.0
// Checks owner, mode and parents of files before use.
#include "runner/system/trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runner/core/text.h"
#include "runner/system/acl.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPlanted = "another user may have put it there: remove it, or choose another folder";

/// Whose files are believed beside root's.
struct Believed {
  uid_t user = geteuid();
  uid_t caller = geteuid();  ///< who called sudo, where that counts
};

bool belongsToOthers(const struct stat& info, const Believed& believed = {}) {
  return info.st_uid != 0 && info.st_uid != believed.user && info.st_uid != believed.caller;
}

Error refused(const std::string& what, const fs::path& path) {
  return {ErrorCode::kUsage, "refused: " + what, path.string()};
}

Error foreignOwner(const std::string& kind, const struct stat& info, const fs::path& path) {
  return refused(fmt::format("the {} belongs to user {}; it must belong to root or to user {}, who runs this",
                             kind, info.st_uid, geteuid()),
                 path);
}

Error writableByOthers(const std::string& kind, const struct stat& info, const char* next,
                       const fs::path& path) {
  return refused(fmt::format("the {} is writable by others than its owner (mode {:04o}); {}", kind,
                             info.st_mode & 07777, next),
                 path);
}

/// Of a path without links: one that is there now was put there meanwhile.
Result<struct stat> statReal(const fs::path& path, const std::string& kind) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Error{ErrorCode::kIo, errnoText(errno), path.string()};
  if (S_ISLNK(info.st_mode))
    return refused(fmt::format("the {} became a symbolic link while it was checked", kind), path);
  return info;
}

/// Calls getpwuid_r or getgrgid_r and returns their errno; `entry` points into `buffer`.
template <typename Entry, typename Find>
int findEntry(Find find, uint32_t number, Entry& space, std::string& buffer, Entry*& entry) {
  buffer.resize(1024);
  for (;;) {
    const int error = find(number, &space, buffer.data(), buffer.size(), &entry);
    if (error != ERANGE || buffer.size() >= (size_t{1} << 24)) return error;
    buffer.resize(buffer.size() * 4);
  }
}

/// Reads a list that getpwent or getgrent gives one by one. False where it cannot be read.
template <typename Next, typename Read>
bool eachEntry(Next next, Read read) {
  errno = 0;
  while (const auto* entry = next()) {
    read(*entry);
    errno = 0;
  }
  return errno == 0 || errno == ENOENT || errno == ESRCH;
}

/// Who has the rights of a group, as far as the lists of users and groups say.
struct GroupUsers {
  std::set<uid_t> primary;        ///< users whose primary group it is, which the group does not list
  std::set<std::string> members;  ///< of all groups of its number: `groupadd -o` makes more than one
};

/// A group's users are asked for once: a list may be long. Those of a directory that does not let itself be
/// listed stay unknown. nullptr where a list cannot be read: there may be others.
const GroupUsers* listedUsers(gid_t group) {
  static std::mutex mutex;
  static std::map<gid_t, GroupUsers> known;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(group); found != known.end()) return &found->second;
  GroupUsers users;
  setpwent();
  bool complete = eachEntry(getpwent, [&](const struct passwd& entry) {
    if (entry.pw_gid == group) users.primary.insert(entry.pw_uid);
  });
  endpwent();
  setgrent();
  complete = eachEntry(getgrent,
                       [&](const struct group& entry) {
                         if (entry.gr_gid != group) return;
                         for (char** member = entry.gr_mem; *member != nullptr; ++member)
                           users.members.insert(*member);
                       }) &&
             complete;
  endgrent();
  return complete ? &known.emplace(group, std::move(users)).first->second : nullptr;
}

/// Whether the group is the owner's alone: of his number, and without another member. Root's is not, as
/// containers run any user with group 0. A group that is not listed has no members but those whose primary
/// one it is; one that cannot be looked up may have.
bool isPrivateGroup(const struct stat& info) {
  if (info.st_uid == 0 || info.st_gid != info.st_uid) return false;
  struct group groupSpace {
  }, *group = nullptr;
  struct passwd userSpace {
  }, *user = nullptr;
  std::string groupBuffer, userBuffer;
  const int error = findEntry(getgrgid_r, info.st_gid, groupSpace, groupBuffer, group);
  if (group == nullptr && error != 0 && error != ENOENT && error != ESRCH) return false;
  const GroupUsers* listed = listedUsers(info.st_gid);
  if (listed == nullptr) return false;
  std::set<std::string> members = listed->members;
  if (group != nullptr)
    for (char** member = group->gr_mem; *member != nullptr; ++member) members.insert(*member);
  if (!members.empty()) {
    if (findEntry(getpwuid_r, info.st_uid, userSpace, userBuffer, user) != 0 || user == nullptr) return false;
    if (members.size() > 1 || *members.begin() != user->pw_name) return false;
  }
  return std::all_of(listed->primary.begin(), listed->primary.end(),
                     [&](uid_t other) { return other == info.st_uid; });
}

/// Whether more users than the owner and those who are believed may write.
bool isOpen(const fs::path& path, const struct stat& info, const Believed& believed) {
  if ((info.st_mode & S_IWOTH) != 0) return true;
  const AclWriters writers =
      aclWriters(path, (info.st_mode & S_IWGRP) != 0, {0, info.st_uid, believed.user, believed.caller});
  return writers.others || (writers.owningGroup && !isPrivateGroup(info));
}

/// What keeps others from writing.
const char* closingOf(const fs::path& path, const struct stat& info) {
  return aclWriters(path, (info.st_mode & S_IWGRP) != 0, {}).others ? "run setfacl -b and chmod go-w on it"
                                                                    : "run chmod go-w on it";
}

Status checkOwnerOnly(const fs::path& path, const std::string& kind) {
  MUSTER_TRY(const struct stat info, statReal(path, kind));
  if (belongsToOthers(info)) return foreignOwner(kind, info, path);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0 && !isOpen(path, info, {})) return {};
  const bool shared =
      S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;  // meant for everybody, as /tmp is
  return writableByOthers(kind, info, shared ? "put it into a folder of its own" : closingOf(path, info),
                          path);
}

Status checkAbove(const fs::path& folder, const std::string& kind, const Believed& believed) {
  const std::string what = "folder above the " + kind;
  MUSTER_TRY(const struct stat info, statReal(folder, what));
  if (belongsToOthers(info, believed)) return foreignOwner(what, info, folder);
  if ((info.st_mode & S_ISVTX) != 0 || !isOpen(folder, info, believed)) return {};
  return writableByOthers(what, info, closingOf(folder, info), folder);
}

/// Whether `folder` is the running program's folder or above it.
bool holdsProgram(const fs::path& folder, const fs::path& programFolder) {
  const auto [end, ignored] =
      std::mismatch(folder.begin(), folder.end(), programFolder.begin(), programFolder.end());
  return end == folder.end();
}

Error cannotWrite(const fs::path& path, int error) {
  return {ErrorCode::kUsage, "cannot write it: " + errnoText(error), path.string()};
}

Result<fs::path> realPath(const fs::path& path, const std::string& kind) {
  std::error_code failure;
  fs::path real = fs::canonical(path, failure);
  if (!failure) return real;
  return Error{failure == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
               fmt::format("cannot find the {}: {}", kind, failure.message()), path.string()};
}

/// Where folders are left out that can be relied on as much as this program; empty: nowhere.
Result<fs::path> programFolder(Above above) {
  return above == Above::kAll ? Result<fs::path>(fs::path()) : executableFolder();
}

/// From the root down: below a folder that was refused nothing can be relied on.
Status checkAllAbove(const fs::path& own, const std::string& kind, const fs::path& program,
                     const Believed& believed) {
  fs::path folder;
  for (const fs::path& part : own) {
    folder /= part;
    if (folder != own && !holdsProgram(folder, program)) MUSTER_CHECK_OK(checkAbove(folder, kind, believed));
  }
  return {};
}

enum class Missing { kRefused, kMade };

/// Follows a path part by part, as the kernel does, and refuses it where anybody but the believed users could
/// change the way: whoever owns a folder on it can turn a link there, also to a folder that is root's.
class Way {
 public:
  Way(std::string kind, const Believed& believed, fs::path program, Missing missing)
      : kind_(std::move(kind)), believed_(believed), program_(std::move(program)), missing_(missing) {}

  /// The real path.
  Result<fs::path> to(const fs::path& path) {
    std::error_code failure;
    goTo(fs::absolute(path, failure));
    if (failure) return Error{ErrorCode::kIo, failure.message(), path.string()};
    while (!ahead_.empty()) {
      const fs::path part = ahead_.front();
      ahead_.pop_front();
      if (part.empty() || part == ".") continue;
      if (!holdsProgram(at_, program_)) MUSTER_CHECK_OK(checkAbove(at_, kind_, believed_));
      if (part == "..")
        at_ = at_.parent_path();
      else
        MUSTER_CHECK_OK(step(at_ / part));
    }
    return at_;
  }

 private:
  void goTo(const fs::path& path) {
    if (path.is_absolute()) at_ = "/";
    const fs::path parts = path.relative_path();
    ahead_.insert(ahead_.begin(), parts.begin(), parts.end());
  }

  Status step(const fs::path& next) {
    struct stat info {};
    int error = lstat(next.c_str(), &info) == 0 ? 0 : errno;
    if (error == ENOENT && missing_ == Missing::kMade) {
      error = mkdir(next.c_str(), 0755) == 0 || errno == EEXIST ? 0 : errno;
      if (error == 0 && lstat(next.c_str(), &info) != 0) error = errno;
    }
    if (error != 0)
      return Error{error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUsage,
                   fmt::format("cannot {} the {}: {}", missing_ == Missing::kMade ? "make" : "find", kind_,
                               errnoText(error)),
                   next.string()};
    if (!S_ISLNK(info.st_mode)) {
      at_ = next;
      return {};
    }
    if (belongsToOthers(info, believed_)) return foreignOwner("link to the " + kind_, info, next);
    if (++links_ > kMostLinks) return refused(fmt::format("too many links to the {}", kind_), next);
    std::error_code failure;
    const fs::path target = fs::read_symlink(next, failure);
    if (failure) return Error{ErrorCode::kIo, failure.message(), next.string()};
    goTo(target);
    return {};
  }

  static constexpr int kMostLinks = 40;
  std::string kind_;
  Believed believed_;
  fs::path program_;
  Missing missing_;
  fs::path at_ = "/";
  std::deque<fs::path> ahead_;
  int links_ = 0;
};

/// The user who called sudo, from its variable; this user where nobody did.
uid_t sudoCaller() {
  const char* text = std::getenv("SUDO_UID");
  const long long number = text == nullptr ? -1 : std::strtoll(text, nullptr, 10);
  return geteuid() == 0 && number > 0 && number <= 0xfffffffe ? static_cast<uid_t>(number) : geteuid();
}

/// A folder that root writes files into, each made under another name and renamed: others may have files
/// there, where the sticky bit protects the entries.
Result<fs::path> rootsOutput(const fs::path& folder, Missing missing,
                             const Believed& believed = {geteuid(), sudoCaller()}) {
  MUSTER_TRY(const fs::path program, programFolder(Above::kOthersThanProgram));
  MUSTER_TRY(const fs::path real, Way("output", believed, program, missing).to(folder));
  if (!holdsProgram(real, program)) MUSTER_CHECK_OK(checkAbove(real, "output", believed));
  return real;
}

Status checkOwnFile(int fd, const fs::path& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return cannotWrite(path, errno);
  if (!S_ISREG(info.st_mode)) return refused(fmt::format("it is not a regular file; {}", kPlanted), path);
  if (info.st_uid != geteuid())
    return refused(fmt::format("it belongs to user {}; {}", info.st_uid, kPlanted), path);
  if (info.st_nlink > 1)
    return refused(fmt::format("it has {} names (hard links); {}", info.st_nlink, kPlanted), path);
  return {};
}

}  // namespace

Result<fs::path> trustedPath(const fs::path& path, const std::string& kind, Above above) {
  MUSTER_TRY(const fs::path real,
             above == Above::kAll ? Way(kind, {}, {}, Missing::kRefused).to(path) : realPath(path, kind));
  const fs::path own = real.parent_path();
  MUSTER_TRY(const fs::path program, programFolder(above));
  MUSTER_CHECK_OK(checkAllAbove(own, kind, program, {}));
  if (!holdsProgram(own, program)) MUSTER_CHECK_OK(checkOwnerOnly(own, "folder of the " + kind));
  MUSTER_CHECK_OK(checkOwnerOnly(real, kind));
  return real;
}

Result<std::string> trustedProgram(const std::string& name, const std::string& folder,
                                   const std::string& package, const std::string& variable) {
  std::vector<std::string> folders = {folder};
  if (const char* path = std::getenv("PATH"); folder.empty() && path != nullptr) folders = split(path, ':');
  for (const std::string& one : folders)
    if (!one.empty() && access((one + "/" + name).c_str(), X_OK) == 0) {
      // By its own name, which may be a link: nobody else can turn one in a trusted folder.
      MUSTER_TRY(const fs::path own, trustedPath(one, "folder of the program", Above::kAll));
      MUSTER_CHECK_OK(trustedPath(own / name, "program", Above::kAll));
      return (own / name).string();
    }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("there is no program {0} in {1}; install the package {2} (apt-get install {2}), or "
                  "set {3} to its directory",
                  name, folder.empty() ? "PATH" : printable(folder), package, variable),
      ""};
}

Result<Fd> openOwnFile(const fs::path& path, int flags, mode_t mode) {
  const int safe = (flags & ~O_TRUNC) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Fd file(open(path.c_str(), safe | O_CREAT | O_EXCL, mode));
  if (file.valid()) return file;
  if (errno != EEXIST) return cannotWrite(path, errno);
  file.reset(open(path.c_str(), safe));
  // ELOOP: a symbolic link. ENXIO: a pipe that nobody reads, or a socket.
  if (!file.valid() && (errno == ELOOP || errno == ENXIO))
    return refused(fmt::format("it is not a regular file; {}", kPlanted), path);
  if (!file.valid()) return cannotWrite(path, errno);
  MUSTER_CHECK_OK(checkOwnFile(file.get(), path));
  if ((flags & O_TRUNC) != 0 && ftruncate(file.get(), 0) != 0) return cannotWrite(path, errno);
  return file;
}

bool isPlanted(const fs::path& entry) {
  const fs::path parent = entry.has_parent_path() ? entry.parent_path() : fs::path(".");
  struct stat info {
  }, folder{};
  if (lstat(entry.c_str(), &info) != 0 || stat(parent.c_str(), &folder) != 0) return false;
  const bool belongsToMe = info.st_uid == 0 || info.st_uid == geteuid();
  return (folder.st_mode & S_ISVTX) != 0 && !belongsToMe && info.st_uid != folder.st_uid;
}

Result<Fd> openLockFile(const fs::path& path) {
  constexpr mode_t kPrivate = 0600;
  MUSTER_TRY(Fd file, openOwnFile(path, O_RDWR, kPrivate));
  if (fchmod(file.get(), kPrivate) != 0) return cannotWrite(path, errno);
  return file;
}

Result<std::string> readPublicFile(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  const Fd fd(error ? -1 : open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0)
    return Error{ErrorCode::kUsage, "cannot read it: " + (error ? error.message() : errnoText(errno)),
                 path.string()};
  const std::string opened = fmt::format("/proc/self/fd/{}", fd.get());
  // The folders of the file that was opened are asked, wherever a link leads by now.
  bool open = (info.st_mode & S_IROTH) != 0 && fs::read_symlink(opened, error) == real;
  for (fs::path folder = real.parent_path(); geteuid() == 0; folder = folder.parent_path()) {
    struct stat above {};
    open = open && stat(folder.c_str(), &above) == 0 && (above.st_mode & S_IXOTH) != 0;
    if (folder == folder.root_path()) break;
  }
  if (!open)
    return Error{ErrorCode::kUsage,
                 "refused: a plan may name only files that everybody may read; chmod o+r it, and o+x the "
                 "directories above, if it is no secret",
                 path.string()};
  auto text = readFile(opened);
  if (!text.ok()) return Error{ErrorCode::kUsage, text.error().message, path.string()};
  return text;
}

Result<std::string> readPrivateFile(const fs::path& path, uint64_t limit) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0)
    return Error{ErrorCode::kUsage, "cannot read the key: " + errnoText(errno), path.string()};
  const bool others = (info.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  const bool foreign = info.st_uid != 0 && info.st_uid != geteuid();
  if (!S_ISREG(info.st_mode) || others || foreign)
    return Error{
        ErrorCode::kUsage,
        fmt::format("refused: a key must be a regular file of root or this user that nobody else can "
                    "read (mode 0600; found {:04o}, user {})",
                    info.st_mode & 07777, info.st_uid),
        path.string()};
  // Through the descriptor: what was checked is what is read.
  auto text = readFile(fmt::format("/proc/self/fd/{}", fd.get()), limit);
  if (!text.ok()) return Error{ErrorCode::kUsage, text.error().message, path.string()};
  return text;
}

Result<std::string> readOwnFile(const fs::path& path, uint64_t limit) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  struct stat folder {
  }, info{};
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.valid())
    return Error{errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUsage,
                 "cannot read it: " + errnoText(errno), path.string()};
  if (stat(parent.c_str(), &folder) != 0 || fstat(file.get(), &info) != 0)
    return Error{ErrorCode::kIo, "cannot read it: " + errnoText(errno), path.string()};
  if (!S_ISREG(info.st_mode)) return refused("it is not a regular file", path);
  if (info.st_uid != folder.st_uid)
    return refused(fmt::format("it belongs to user {}, its folder to {}", info.st_uid, folder.st_uid), path);
  // A group may share a user's run on purpose; root's files are root's alone, as ownFolder() has it.
  const std::string opened = fmt::format("/proc/self/fd/{}", file.get());
  if ((info.st_mode & S_IWOTH) != 0 || (info.st_uid == 0 && isOpen(opened, info, {})))
    return writableByOthers("file", info,
                            "what it says may be anybody's: remove it, or run chmod go-w on it "
                            "if nobody has changed it",
                            path);
  // Through the descriptor: what was checked is what is read.
  auto text = readFile(opened, limit);
  if (!text.ok()) return Error{text.error().code, text.error().message, path.string()};
  return text;
}

Result<fs::path> trustedTarget(const fs::path& path, const std::string& kind, Above above) {
  const fs::path wanted = fs::absolute(path).lexically_normal();
  fs::path there = wanted;
  std::error_code error;
  while (!fs::exists(fs::symlink_status(there, error)) && there.has_relative_path())
    there = there.parent_path();
  MUSTER_TRY(const fs::path trusted, trustedPath(there, kind, above));
  return (trusted / wanted.lexically_relative(there)).lexically_normal();
}

Status trustFolder(const fs::path& folder, const std::string& kind, Above above) {
  MUSTER_TRY(const fs::path trusted, trustedPath(folder, kind, above));
  std::error_code error;
  for (fs::recursive_directory_iterator entry(trusted, error), end; !error && entry != end;
       entry.increment(error))
    MUSTER_CHECK_OK(trustedPath(entry->path(), kind, above));
  if (error) return Error{ErrorCode::kIo, "cannot list it: " + error.message(), trusted.string()};
  return {};
}

Result<fs::path> ownFolder(const fs::path& folder, const std::string& kind) {
  const bool isRoot = geteuid() == 0;
  const Believed believed{geteuid(), sudoCaller()};
  MUSTER_TRY(const fs::path program, programFolder(Above::kOthersThanProgram));
  MUSTER_TRY(const fs::path real,
             isRoot ? Way(kind, believed, program, Missing::kRefused).to(folder) : realPath(folder, kind));
  MUSTER_TRY(const struct stat info, statReal(real, kind));
  if (belongsToOthers(info, believed)) return foreignOwner(kind, info, real);
  const std::vector<uid_t> users = {0, info.st_uid, believed.caller};
  if ((info.st_mode & S_IWOTH) != 0 || (isRoot && isOpen(real, info, believed)))
    return writableByOthers(kind, info, "use a folder of your own", real);
  if (isRoot && defaultAclOpens(real, users))
    return refused("others may write what will be made in it, by its default ACL; run setfacl -k on it",
                   real);
  return real;
}

Result<fs::path> outputFolder(const fs::path& folder) {
  return geteuid() == 0 ? rootsOutput(folder, Missing::kRefused) : folder;
}

Result<fs::path> makeOwnFolder(const fs::path& folder) {
  if (geteuid() == 0) return rootsOutput(folder, Missing::kMade, {});
  return makeOutputFolder(folder, "");
}

Status makeOwnSubfolder(const fs::path& folder, const std::string& kind) {
  struct stat info {};
  if (mkdir(folder.c_str(), 0755) == 0) return {};
  if (errno != EEXIST || lstat(folder.c_str(), &info) != 0)
    return Error{ErrorCode::kUsage, fmt::format("cannot make the {}: {}", kind, errnoText(errno)),
                 folder.string()};
  if (!S_ISDIR(info.st_mode)) return refused(fmt::format("it is not a folder; {}", kPlanted), folder);
  const auto own = ownFolder(folder, kind);
  if (own.ok()) return {};
  return Error{own.error().code, fmt::format("{}; {}", own.error().message, kPlanted), own.error().where};
}

Result<fs::path> makeOutputFolder(const fs::path& folder, const std::string& option) {
  std::error_code failure;
  if (geteuid() != 0) fs::create_directories(folder, failure);
  Result<fs::path> real = geteuid() == 0 ? rootsOutput(folder, Missing::kMade) : folder;
  if (failure) real = Error{ErrorCode::kUsage, "cannot make it: " + failure.message(), folder.string()};
  if (real.ok() || option.empty()) return real;
  return Error{real.error().code,
               fmt::format("{}; choose another folder with {}", real.error().message, option),
               real.error().where};
}

}  // namespace muster
