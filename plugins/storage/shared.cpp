// SPDX-License-Identifier: Apache-2.0
// Test "shared": whether all nodes see one and the same directory, in time, whole, and with locks that hold.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "kernels/spec/pattern.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/test_case.h"
#include "plugins/storage/params.h"
#include "plugins/storage/scratch.h"
#include "plugins/storage/tests.h"
#include "plugins/storage/views.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster::storage {
namespace {

constexpr uint64_t kReplacements = 20;  ///< versions of each file that follow the first
constexpr double kPatience = 60;        ///< seconds that nodes wait for each other beside their work
constexpr int kLookMillis = 20;         ///< between looks at a file that is not visible yet

/// The words of version `version` of the file of `rank`.
std::string contentOf(uint64_t bytes, int rank, uint64_t version) {
  std::string text(bytes, '\0');
  const uint64_t base = scatter(static_cast<uint64_t>(rank) << 32 | version);
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = scatter(base + at);
    std::memcpy(text.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return text;
}

std::string fileOf(int rank) {
  return fmt::format("rank{}", rank);
}

/// An error at this node's own files. But for these it can be the doing of another node of the run, which may
/// do the same there, and is no finding about this one (kPeer).
Error failed(const std::string& what, int error, const std::string& file) {
  constexpr int kOfThisNode[] = {EIO,   ENOSYS,    ENOTCONN,  EOPNOTSUPP, EREMOTEIO,
                                 EROFS, ESHUTDOWN, ETIMEDOUT, EHOSTDOWN,  EHOSTUNREACH};
  const bool isOwn =
      std::find(std::begin(kOfThisNode), std::end(kOfThisNode), error) != std::end(kOfThisNode);
  return {isOwn ? ErrorCode::kIo : ErrorCode::kPeer, what + ": " + errnoText(error), file};
}

/// What a file of the directory holds, at most one byte more than `size`; nothing where it cannot be read,
/// for the reason in errno.
std::optional<std::string> contentsOf(int directory, const std::string& file, uint64_t size) {
  const Fd fd(openat(directory, file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::string found(size + 1, '\0');  // a file that is too long shows
  const ssize_t length = readFully(fd.get(), found.data(), found.size());
  if (length < 0) return {};
  found.resize(static_cast<size_t>(length));
  return found;
}

/// The directory of all ranks. Each makes it where another has not yet, so that nodes with a directory of
/// their own get that far, too.
class Meeting {
 public:
  ~Meeting() {
    if (!own_.valid()) return;
    leave();
  }
  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  Status enter(Fd parent, const std::string& name) {
    parent_ = std::move(parent);
    name_ = name;
    if (mkdirat(parent_.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return failed("cannot make a directory there", errno, name);
    own_ = Fd(openat(parent_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!own_.valid()) return failed("cannot open the directory", errno, name);
    inode_ = inodeOf(own_.get());
    const Status isOwn = requireOwn(own_.get(), name);
    return isOwn.ok() ? isOwn : Error{ErrorCode::kPeer, isOwn.error().message, name};
  }
  [[nodiscard]] int fd() const { return own_.get(); }
  [[nodiscard]] const std::string& inode() const { return inode_; }  ///< empty: not entered
  /// Whether the name or that of `directory`, the parent, leads to another directory now, or to none.
  [[nodiscard]] bool isMoved(const std::string& directory) const {
    return own_.valid() && (leadsAway(AT_FDCWD, directory, parent_.get(), 0) ||
                            leadsAway(parent_.get(), name_, own_.get(), AT_SYMLINK_NOFOLLOW));
  }

  /// A new version of a file, whatever is in its place. It is written under a name that nobody else knows,
  /// and prepared there before it is renamed.
  Result<Fd> replace(const std::string& file, std::string_view content,
                     const std::function<Status(int)>& prepare = {}) {
    MUSTER_TRY(const std::string fresh, newName());
    Fd fd(openat(own_.get(), fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return failed("cannot make a file", errno, file);
    files_[fresh] = {};
    const auto old = files_.find(file);
    if (const int error = writeFully(fd.get(), content)) return failed("cannot write a file", error, file);
    if (fsync(fd.get()) != 0) return failed("cannot write a file", errno, file);
    if (prepare) MUSTER_CHECK_OK(prepare(fd.get()));
    if (old != files_.end() && look(file) != old->second) changed_ = true;
    if (renameat(own_.get(), fresh.c_str(), own_.get(), file.c_str()) != 0)
      return failed("cannot rename a file", errno, file);
    files_.erase(fresh);
    files_[file] = look(file);
    if (!holds(file, fd.get(), content) || look(file) != files_[file]) changed_ = true;
    return fd;
  }
  /// Whether a file was not as this rank left it, now or at any of its replacements.
  [[nodiscard]] bool changed() const {
    return changed_ || std::any_of(files_.begin(), files_.end(),
                                   [this](const auto& file) { return look(file.first) != file.second; });
  }
  /// Removes what this rank made; the directory goes with the last one.
  void leave() {
    for (const auto& [file, left] : files_) unlinkat(own_.get(), file.c_str(), 0);
    files_.clear();
    unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
  }

 private:
  static bool leadsAway(int from, const std::string& name, int open, int flags) {
    struct stat own {};
    struct stat named {};
    if (fstat(open, &own) != 0) return false;
    if (fstatat(from, name.c_str(), &named, flags) != 0) return errno == ENOENT || errno == ENOTDIR;
    return own.st_dev != named.st_dev || own.st_ino != named.st_ino;
  }

  /// Inode, size and time of change, which tell of whatever another one did to a file or to its name.
  using Look = std::array<uint64_t, 4>;
  /// As the server has it. Not opened: closing it would end the lock.
  [[nodiscard]] Look look(const std::string& file) const {
    struct statx info {};
    if (statx(own_.get(), file.c_str(), AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
              STATX_INO | STATX_SIZE | STATX_CTIME, &info) != 0)
      return {};
    return {info.stx_ino, info.stx_size, static_cast<uint64_t>(info.stx_ctime.tv_sec),
            info.stx_ctime.tv_nsec};
  }

  /// Whether the name leads to the open file `own`, and that to these contents. A file without contents is
  /// one with a lock, and not opened a second time.
  [[nodiscard]] bool holds(const std::string& file, int own, std::string_view content) const {
    struct stat mine {};
    struct stat named {};
    if (fstat(own, &mine) != 0 || fstatat(own_.get(), file.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        mine.st_ino != named.st_ino)
      return false;
    return content.empty() ? named.st_size == 0 : contentsOf(own_.get(), file, content.size()) == content;
  }

  Fd parent_, own_;
  std::string name_, inode_;
  std::map<std::string, Look> files_;  ///< as this rank left them
  bool changed_ = false;
};

/// Tells who is at fault and why, on all ranks; whether it is this one. An error where that cannot be told: a
/// node that may be well is not rejected.
Result<bool> reportFaults(const Site& site, const std::vector<NodeView>& nodes) {
  bool own = false, told = true;
  std::vector<std::string> texts;
  for (const NodeFault& fault : blame(nodes)) {
    const bool isOfAll = fault.node == kAllNodes;
    texts.push_back((isOfAll ? "all nodes" : nodes[static_cast<size_t>(fault.node)].name) + ": " +
                    fault.text);
    if (!isOfAll && fault.node != site.rank) continue;
    own = true;
    told = fault.told;
  }
  const std::string text = reasonText(join(texts, " || "));
  if (!texts.empty()) MUSTER_CHECK_OK(site.host.fact("node_fault", text));
  if (!told)
    return Error{ErrorCode::kPeer, "nodes see the directory differently: " + quoted(text, text.size()), ""};
  return own;
}

class SharedCase {
 public:
  SharedCase(const Site& site, const SharedParams& params)
      : site_(site), params_(params), store_(site.host) {}

  Status run() {
    MUSTER_CHECK_OK(meet());
    MUSTER_CHECK_OK(together("written", [this] { return write(0); }));
    lookAtAll(0);
    MUSTER_CHECK_OK(together("seen", [] { return Status(); }));
    MUSTER_CHECK_OK(together("replaced", [this] { return replaceAndRead(); }));
    lookAtAll(kReplacements);
    if (params_.locks) MUSTER_CHECK_OK(tryLocks());
    MUSTER_CHECK_OK(together("looked", [] { return Status(); }));
    MUSTER_TRY(const std::vector<NodeView> nodes, collect());
    meeting_.leave();  // a second time below: where others' files were in the way now
    MUSTER_CHECK_OK(barrier("left"));
    return report(nodes);
  }

 private:
  [[nodiscard]] bool canWork() const { return problem_.empty(); }
  [[nodiscard]] std::string content(uint64_t version) const {
    return contentOf(params_.size, site_.rank, version);
  }
  Status write(uint64_t version) {
    MUSTER_TRY(const Fd written, meeting_.replace(fileOf(site_.rank), content(version)));
    return {};
  }
  Status barrier(const char* name) {
    return store_.barrier(name, kPatience + params_.visibleWithin * 2 * site_.size);
  }
  /// Opens the directory and agrees on a name in it.
  Status meet() {
    auto directory = openIn(params_.directory);
    if (directory.ok()) {
      MUSTER_TRY(mount_, mountOf(directory->get()));
      MUSTER_CHECK_OK(reportMount(site_, mount_));
      parent_ = inodeOf(directory->get());
    } else {
      keepProblem({ErrorCode::kPeer, directory.error().message, directory.error().where});
      if (auto above = mountAbove(params_.directory); above.ok()) mount_ = *std::move(above);
    }
    if (site_.rank == 0) {
      MUSTER_TRY(const std::string name, newName());
      MUSTER_CHECK_OK(store_.set("name", name));
    }
    MUSTER_TRY(const std::string name, store_.get("name", kPatience));
    if (!isPlainName(name)) return Error{ErrorCode::kPeer, "rank 0 chose no plain name", printable(name, 80)};
    return together("entered", [&] { return meeting_.enter(std::move(directory).value(), name); });
  }

  /// Does a step where the ones before went well, and waits for all nodes. What fails is a finding about this
  /// node, which goes on only to meet the others.
  template <typename Step>
  Status together(const char* name, Step step) {
    site_.host.progress(-1, name);
    if (site_.host.cancelled()) return Error{ErrorCode::kTimeout, "cancelled", name};
    if (canWork())
      if (const Status status = step(); !status.ok()) keepProblem(status.error());
    isMoved_ = isMoved_ || meeting_.isMoved(params_.directory);
    return barrier(name);
  }

  void keepProblem(const Error& error) {
    problem_ = error.text();
    isCommon_ = error.code == ErrorCode::kPeer;
  }

  /// Whether nothing is known against it but what was seen during replacements.
  [[nodiscard]] bool isSound(int of) const {
    const auto kept = static_cast<Sight>(sights_[static_cast<size_t>(of)]);
    return kept == Sight::kSame || kept == Sight::kTorn;
  }
  /// Keeps the first fault of each.
  void see(int of, Sight sight) {
    if (sight != Sight::kSame && isSound(of)) sights_[static_cast<size_t>(of)] = static_cast<char>(sight);
  }

  /// How the file of `of`, which should hold this version, looks from here.
  [[nodiscard]] Sight sightOf(int of, uint64_t newest) const {
    const auto found = contentsOf(meeting_.fd(), fileOf(of), params_.size);
    if (!found)  // ESTALE: NFS, where it was replaced meanwhile
      return errno == ENOENT || errno == ESTALE ? Sight::kMissing : Sight::kUnreadable;
    for (uint64_t version = newest + 1; version-- > 0;)
      if (found == contentOf(params_.size, of, version))
        return version == newest ? Sight::kSame : Sight::kStale;
    return Sight::kWrong;
  }

  /// Waits until every other node's file is there in this version.
  void lookAtAll(uint64_t version) {
    const double begin = systemClock().now();
    for (int of = 0; canWork() && of < site_.size; ++of) {
      if (of == site_.rank || !isSound(of)) continue;
      Sight sight = sightOf(of, version);
      while (sight != Sight::kSame && !site_.host.cancelled() &&
             systemClock().now() - begin < params_.visibleWithin) {
        poll(nullptr, 0, kLookMillis);
        sight = sightOf(of, version);
      }
      if (sight == Sight::kSame) visibleTime_ = std::max(visibleTime_, systemClock().now() - begin);
      see(of, sight);
    }
  }

  /// Replaces its own file again and again while it reads its neighbour's, which does the same: each reading
  /// must find one version as a whole.
  Status replaceAndRead() {
    const int neighbour = (site_.rank + 1) % site_.size;
    for (uint64_t version = 1; version <= kReplacements; ++version) {
      MUSTER_CHECK_OK(write(version));
      if (sightOf(neighbour, kReplacements) == Sight::kWrong) see(neighbour, Sight::kTorn);
    }
    return {};
  }

  /// Each node holds the lock of a file of its own while all others try to get it.
  Status tryLocks() {
    const auto nameOf = [](int rank) { return fileOf(rank) + ".lock"; };
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    Fd own;
    MUSTER_CHECK_OK(together("locked", [&]() -> Status {
      MUSTER_TRY(own, meeting_.replace(nameOf(site_.rank), "", [&](int file) -> Status {
        if (fcntl(file, F_SETLK, &whole) == 0) return {};
        return failed("cannot lock a file by fcntl (of Lustre, mount it with -o flock)", errno,
                      params_.directory);
      }));
      return {};
    }));
    return together("tried", [&]() -> Status {
      for (int of = 0; of < site_.size; ++of) {
        if (of == site_.rank) continue;
        const Fd file(openat(meeting_.fd(), nameOf(of).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
        if (file.valid() && fcntl(file.get(), F_SETLK, &whole) == 0) see(of, Sight::kLocked);
      }
      return {};
    });
  }

  [[nodiscard]] Result<NodeView> readView(const std::string& text, const std::string& key) const {
    MUSTER_TRY(const Json json, parseJson(text));
    NodeView view;
    JsonReader reader(json, key);
    reader.read("name", view.name);
    reader.read("mount", view.mount);
    reader.read("problem", view.problem);
    reader.read("is_common", view.isCommon);
    reader.read("changed", view.changed);
    reader.read("sights", view.sights);
    reader.read("root", view.root);
    reader.read("parent", view.parent);
    reader.read("entered", view.entered);
    reader.read("moved", view.moved);
    MUSTER_CHECK_OK(reader.status());
    if (view.sights.size() != static_cast<size_t>(site_.size) ||
        view.sights.find_first_not_of(".mswtlu") != std::string::npos)
      return Error{ErrorCode::kProtocol, "tells of other nodes or in other signs", ""};
    return view;
  }

  /// What all nodes saw, on all of them.
  Result<std::vector<NodeView>> collect() {
    const std::string own = dumpJson({{"name", site_.node},
                                      {"mount", mount_.text()},
                                      {"problem", problem_},
                                      {"sights", sights_},
                                      {"is_common", isCommon_},
                                      {"root", mount_.root},
                                      {"parent", parent_},
                                      {"entered", meeting_.inode()},
                                      {"moved", isMoved_},
                                      {"changed", canWork() && meeting_.changed()}});
    MUSTER_CHECK_OK(store_.set(fmt::format("view/{}", site_.rank), own));
    std::vector<NodeView> nodes;
    for (int rank = 0; rank < site_.size; ++rank) {
      const std::string key = fmt::format("view/{}", rank);
      MUSTER_TRY(const std::string text, store_.get(key, kPatience));
      Result<NodeView> view = readView(rank == site_.rank ? own : text, key);
      if (!view.ok()) return Error{ErrorCode::kPeer, quoted(view.error().text(), 300), key};
      nodes.push_back(*std::move(view));
    }
    std::vector<std::string> names;
    for (const NodeView& node : nodes) names.push_back(node.name);
    keepOwnNames(names);
    for (size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank].name = names[rank];
    return nodes;
  }

  Status report(const std::vector<NodeView>& nodes) const {
    MUSTER_TRY(const bool isFaulty, reportFaults(site_, nodes));
    if (canWork()) MUSTER_CHECK_OK(site_.host.measurement("visible_time", "s", {visibleTime_}));
    return site_.host.measurement("faulty_node", "bool", {isFaulty ? 1.0 : 0.0});
  }

  const Site& site_;
  const SharedParams& params_;
  sdk::HostStore store_;
  Mount mount_;
  Meeting meeting_;
  std::string problem_;    ///< why this node cannot take part
  bool isCommon_ = false;  ///< see NodeView
  std::string parent_;     ///< see NodeView
  bool isMoved_ = false;   ///< see NodeView; looked at after each step
  std::string sights_ = std::string(static_cast<size_t>(site_.size), static_cast<char>(Sight::kSame));
  double visibleTime_ = 0;
};

Status simulate(Site& site) {
  const double now = site.simulated->now();
  const std::vector<int> apart = site.simulated->nodesApart();
  std::vector<NodeView> nodes(static_cast<size_t>(site.size));
  for (int rank = 0; rank < site.size; ++rank) {
    NodeView& view = nodes[static_cast<size_t>(rank)];
    view = {fmt::format("node {}", rank), "simulated", "", std::string(nodes.size(), '.')};
    for (int of = 0; of < site.size; ++of) {
      const auto isApart = [&](int node) { return std::count(apart.begin(), apart.end(), node) > 0; };
      if (of != rank && (isApart(rank) || isApart(of))) view.sights[static_cast<size_t>(of)] = 'm';
    }
  }
  MUSTER_TRY(const bool isFaulty, reportFaults(site, nodes));
  MUSTER_CHECK_OK(reportMount(site, {"simulated", "simulated", "simulated"}));
  return site.host.measurement("faulty_node", "bool", {isFaulty ? 1.0 : 0.0}, {}, now);
}

}  // namespace

Status runShared(Site& site, const Json& caseJson) {
  MUSTER_TRY(const sdk::CaseInput input, sdk::readCase(caseJson));
  MUSTER_TRY(const SharedParams params, sdk::readParams<SharedParams>(*input.params));
  if (site.size < 2) return Error{ErrorCode::kUnsupported, "needs two nodes, and this run has one", ""};
  if (site.simulated != nullptr) return simulate(site);
  if (params.directory.empty())
    return Error{ErrorCode::kUnsupported,
                 "no shared directory is named in `directory` (--set STAGE.directory=/shared)", ""};
  return SharedCase(site, params).run();
}

}  // namespace muster::storage
