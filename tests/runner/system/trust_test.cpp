// SPDX-License-Identifier: Apache-2.0
// What another user could change, tried by a process of another user.
#include "runner/system/trust.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <tuple>

#include "tests/support/access_list.h"
#include "tests/support/process.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::allow;
using ::testing::HasSubstr;
using testing::kDefaultList;
using testing::kNoLists;
using testing::TempDir;

constexpr uid_t kStranger = 12345;

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}
std::string content(const fs::path& path) {
  return readFile(path).value();
}

/// Runs `attack` as another user, and returns whether it succeeded.
template <typename Attack>
bool asStranger(Attack attack) {
  const pid_t child = fork();
  if (child == 0) {
    const bool became = setgroups(0, nullptr) == 0 && setgid(kStranger) == 0 && setuid(kStranger) == 0;
    _exit(!became ? 99 : attack() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << "status " << status;
  return WEXITSTATUS(status) == 1;
}

/// Tries to change a file, or to put another thing in the place of it or of a folder above it, up to `top`.
bool canReplace(const fs::path& file, const fs::path& top) {
  if (Fd(open(file.c_str(), O_WRONLY)).valid()) return true;
  for (fs::path part = file; part != top; part = part.parent_path())
    if (rename(part.c_str(), (part.string() + ".old").c_str()) == 0) return true;
  // An owner can give himself whatever he lacks.
  for (fs::path part = file; part != top; part = part.parent_path())
    if (chmod(part.c_str(), 0777) == 0) return true;
  return false;
}

TEST(TrustFolder, ChecksEverythingBelow) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
  const TempDir folder;
  fs::create_directories(folder.path() / "a" / "b");
  write(folder.path() / "a" / "b" / "lib.so", "");
  EXPECT_TRUE(trustFolder(folder.path() / "a", "library").ok());
  fs::permissions(folder.path() / "a" / "b" / "lib.so", fs::perms(0666));
  EXPECT_THAT(trustFolder(folder.path() / "a", "library").error().text(), HasSubstr("lib.so"));
}

/// What is not there yet is as safe as the folder in which it may be made.
TEST(TrustedTarget, LooksAtTheNearestFolderThatIsThere) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder to another user";
  const TempDir folder;
  const fs::path here = folder.path() / "here", missing = here / "new" / "image.sif";
  fs::create_directory(here);
  ASSERT_TRUE(trustedTarget(missing, "image").ok());
  EXPECT_EQ(trustedTarget(missing, "image").value(), fs::canonical(here) / "new" / "image.sif");
  fs::create_symlink("nowhere", here / "link");
  EXPECT_FALSE(trustedTarget(here / "link", "image").ok()) << "a link that leads nowhere yet";
  EXPECT_FALSE(trustedTarget("/tmp/missing.sif", "image").ok()) << "anybody may make it";
  ASSERT_EQ(chown(here.c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(trustedTarget(missing, "image").ok());
}

TEST(Trust, RefusesWhateverAnotherUserCanReplace) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  std::mt19937 random(7);
  int replaced = 0, accepted = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const TempDir folder;
    chmod(folder.path().c_str(), 0755);
    fs::path path = folder.path();
    for (int depth = 0; depth < 3; ++depth) {
      path /= "d" + std::to_string(depth);
      if (depth == 2) path = path.parent_path() / "plugin.so";
      if (depth == 2)
        write(path, "library");
      else
        fs::create_directory(path);
      const bool odd = random() % 3 == 0;
      const uid_t owner = odd && random() % 3 == 0 ? kStranger : 0;
      const gid_t group = odd && random() % 2 == 0 ? kStranger : 0;
      ASSERT_EQ(chown(path.c_str(), owner, group), 0);
      const mode_t modes[] = {0755, 0775, 0777, 01777, 0757};
      ASSERT_EQ(chmod(path.c_str(), odd ? modes[random() % 5] : 0755), 0);
      if (odd && random() % 4 == 0) allow(path, random() % 2 == 0 ? kStranger : 0);
    }
    const auto status = trustedPath(path, "plugin");
    accepted += status.ok();
    const bool could = asStranger([&] { return canReplace(path, folder.path()); });
    replaced += could;
    EXPECT_FALSE(could && status.ok())
        << "trial " << trial << ": another user replaced " << path << ", which was accepted";
  }
  EXPECT_GT(replaced, 50);
  EXPECT_GT(accepted, 50);
}

TEST(Trust, RefusesAFolderThatAnAccessListOpens) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can try it as another user";
  const TempDir folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const fs::path above = folder.path() / "above", own = above / "plugins", his = above / "his";
  fs::create_directories(own);
  fs::create_directories(his);
  write(own / "env.so", "library");
  if (!allow(above, 0)) GTEST_SKIP() << kNoLists;
  EXPECT_TRUE(trustedPath(own / "env.so", "plugin").ok()) << "it names root alone";
  EXPECT_TRUE(ownFolder(own).ok());
  ASSERT_TRUE(allow(above, 0, "system.posix_acl_access", 7));
  EXPECT_FALSE(trustedPath(own / "env.so", "plugin").ok()) << "root's group may have members";
  ASSERT_TRUE(allow(above, kStranger));
  EXPECT_TRUE(asStranger(
      [&] { return renameat2(AT_FDCWD, own.c_str(), AT_FDCWD, his.c_str(), RENAME_EXCHANGE) == 0; }));
  EXPECT_THAT(trustedPath(his / "env.so", "plugin").error().text(),
              AllOf(HasSubstr("the folder above the plugin is writable by others"), HasSubstr("setfacl -b")));
  EXPECT_FALSE(ownFolder(own).ok());
  EXPECT_FALSE(makeOutputFolder(above / "run", "--out").ok());
  EXPECT_FALSE(fs::exists(above / "run"));
}

TEST(Trust, RefusesARunFolderWhoseNewFilesOthersCouldWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "it concerns root's folders";
  const TempDir folder;
  if (!allow(folder.path(), kStranger, kDefaultList)) GTEST_SKIP() << kNoLists;
  EXPECT_THAT(ownFolder(folder.path()).error().text(),
              AllOf(HasSubstr("default ACL"), HasSubstr("setfacl -k")));
  ASSERT_TRUE(allow(folder.path(), 0, kDefaultList));
  EXPECT_TRUE(ownFolder(folder.path()).ok());
}

/// What `judge` says where the group 12345 has these members, and these users are there too.
bool withGroup(const std::string& members, const std::function<bool()>& judge, bool& tried,
               const std::string& users = "") {
  const TempDir folder;
  write(folder.path() / "group", "root:x:0:\nhis:x:12345:" + members + "\n");
  write(folder.path() / "passwd", "root:x:0:0::/:/bin/sh\nhis:x:12345:12345::/:/bin/sh\n" + users);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(2);
    for (const char* file : {"group", "passwd"})
      if (mount((folder.path() / file).c_str(), (std::string("/etc/") + file).c_str(), nullptr, MS_BIND,
                nullptr) != 0)
        _exit(2);
    _exit(judge() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  tried = WIFEXITED(status) && WEXITSTATUS(status) < 2;
  return WEXITSTATUS(status) == 1;
}

TEST(Trust, AGroupIsPrivateOnlyWithoutOtherMembers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir folder;
  const fs::path home = folder.path() / "home", run = home / "run";
  fs::create_directories(run);
  ASSERT_EQ(chmod(home.c_str(), 0775), 0);
  EXPECT_FALSE(ownFolder(run).ok()) << "root's group";
  ASSERT_EQ(chown(home.c_str(), kStranger, kStranger), 0);
  setenv("SUDO_UID", "12345", 1);
  bool tried = false;
  const auto accepted = [&] { return ownFolder(run).ok(); };
  const bool alone = withGroup("", accepted, tried), himself = withGroup("his", accepted, tried),
             more = withGroup("his,mallory", accepted, tried),
             second = withGroup("\nproj6:x:12345:mallory", accepted, tried),
             secondAlone = withGroup("\nproj6:x:12345:his", accepted, tried),
             primary = withGroup("", accepted, tried, "bob:x:12346:12345::/:/bin/sh\n"),
             others = withGroup(
                 "",
                 [&] {  // his own folder is private to him; bob's with the same group is not to bob
                   if (!accepted() || chown(home.c_str(), 12346, kStranger) != 0) return true;
                   setenv("SUDO_UID", "12346", 1);
                   return accepted();
                 },
                 tried),
             restored = chown(home.c_str(), kStranger, kStranger) == 0,
             unlisted = accepted();  // last: who has the group is asked once
  unsetenv("SUDO_UID");
  EXPECT_TRUE(unlisted) << "no such group is listed";
  if (!tried) GTEST_SKIP() << "cannot mount another /etc/group here";
  EXPECT_TRUE(alone);
  EXPECT_TRUE(himself);
  EXPECT_FALSE(more);
  EXPECT_FALSE(second) << "mallory is a member of another group with the number";
  EXPECT_TRUE(secondAlone);
  EXPECT_FALSE(primary) << "bob writes with his primary group";
  EXPECT_TRUE(restored);
  EXPECT_FALSE(others) << "the group is another user's primary one";
}

TEST(Trust, NamesTheFolderAboveThatIsOpenAndWhatToDo) {
  const TempDir folder;
  const fs::path own = folder.path() / "above" / "own";
  fs::create_directories(own);
  write(own / "plugin.so", "library");
  EXPECT_TRUE(trustedPath(own / "plugin.so", "plugin").ok());
  ASSERT_EQ(chmod((folder.path() / "above").c_str(), 0777), 0);
  EXPECT_THAT(trustedPath(own / "plugin.so", "plugin").error().text(),
              AllOf(HasSubstr("above: refused: the folder above the plugin is writable by others"),
                    HasSubstr("run chmod go-w on it")));
}

TEST(OwnFile, IsCreatedAndOpenedAgain) {
  const TempDir folder;
  const fs::path path = folder.path() / "log";
  for (const char* text : {"one\n", "two\n"}) {
    const Result<Fd> file = openOwnFile(path, O_WRONLY | O_APPEND);
    ASSERT_TRUE(file.ok()) << file.error().text();
    ASSERT_TRUE(appendAndSync(file->get(), text, path).ok());
  }
  EXPECT_EQ(content(path), "one\ntwo\n");
  ASSERT_TRUE(openOwnFile(path, O_WRONLY | O_TRUNC).ok());
  EXPECT_EQ(content(path), "");
}

/// Puts something at `path` that an attacker would: it leads to `target`, or blocks who opens it.
void plant(const std::string& kind, const fs::path& path, const fs::path& target) {
  if (kind == "link") fs::create_symlink(target, path);
  if (kind == "link to nothing") fs::create_symlink(target.string() + ".new", path);
  if (kind == "hard link") fs::create_hard_link(target, path);
  if (kind == "pipe") mkfifo(path.c_str(), 0666);
  if (kind == "folder") fs::create_directory(path);
  if (kind == "socket") {
    const Fd server(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  if (kind == "file of another user") {
    write(path, "his");
    ASSERT_EQ(chown(path.c_str(), kStranger, kStranger), 0);
  }
}

TEST(OwnFile, RefusesWhatAnotherUserPutThere) {
  for (const std::string kind :
       {"link", "link to nothing", "hard link", "pipe", "folder", "socket", "file of another user"}) {
    if (kind == "file of another user" && geteuid() != 0) continue;  // only root can make one
    for (const int flags : {O_WRONLY | O_APPEND, O_WRONLY | O_TRUNC, O_RDWR}) {
      const TempDir folder;
      const fs::path target = folder.path() / "target";
      write(target, "kept");
      plant(kind, folder.path() / "log", target);
      const Result<Fd> file = openOwnFile(folder.path() / "log", flags);
      EXPECT_FALSE(file.ok()) << kind << ", flags " << flags;
      EXPECT_EQ(content(target), "kept") << kind;
      EXPECT_FALSE(fs::exists(target.string() + ".new")) << kind;
    }
  }
}

/// What anybody could have written says nothing; what a user's group may write is the user's choice.
TEST(OwnFile, IsNotReadWhereOthersMayWriteToIt) {
  const TempDir folder;
  const fs::path file = folder.path() / "fleet.exit";
  write(file, "0\n");
  for (const auto& [user, mode, read] : {std::tuple{geteuid(), 0644, true},
                                         {geteuid(), 0666, false},
                                         {geteuid(), 0646, false},
                                         {geteuid(), 0664, geteuid() != 0},
                                         {kStranger, 0664, true},
                                         {kStranger, 0666, false}}) {
    if (user != geteuid() && geteuid() != 0) continue;  // only root can give it away
    for (const fs::path& path : {folder.path(), file}) ASSERT_EQ(chown(path.c_str(), user, user), 0);
    ASSERT_EQ(chmod(file.c_str(), static_cast<mode_t>(mode)), 0);
    const auto text = readOwnFile(file, 64);
    EXPECT_EQ(text.ok(), read) << user << " " << std::oct << mode;
    if (text.ok()) continue;
    EXPECT_THAT(text.error().text(), AllOf(HasSubstr("fleet.exit: refused: the file is writable by others"),
                                           HasSubstr("remove it, or run chmod go-w on it")));
  }
}

TEST(Planted, IsWhatAnotherUserPutIntoASharedFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const TempDir folder;
  const fs::path mine = folder.path() / "mine", his = folder.path() / "his", link = folder.path() / "link";
  write(mine, "");
  write(his, "");
  fs::create_symlink(mine, link);
  ASSERT_EQ(chown(his.c_str(), kStranger, kStranger), 0);
  ASSERT_EQ(lchown(link.c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(isPlanted(his)) << "nobody else can write there";
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  EXPECT_FALSE(isPlanted(mine));
  EXPECT_TRUE(isPlanted(his));
  EXPECT_TRUE(isPlanted(link));
  EXPECT_FALSE(isPlanted(folder.path() / "missing"));
  ASSERT_EQ(chown(folder.path().c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(isPlanted(his)) << "the folder is his";
}

TEST(OwnFile, ALockCannotBeHeldByAnotherUser) {
  const TempDir folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const fs::path old = folder.path() / "old", fresh = folder.path() / "fresh";
  write(old, "");
  ASSERT_EQ(chmod(old.c_str(), 0644), 0);
  for (const fs::path& path : {old, fresh}) {
    const Result<Fd> lock = openLockFile(path);
    ASSERT_TRUE(lock.ok()) << lock.error().text();
    EXPECT_EQ(flock(lock->get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0600)) << path;
  }
}

TEST(OwnFolder, BelongsToThisUserAndIsNotWritableByAll) {
  const TempDir folder;
  EXPECT_TRUE(ownFolder(folder.path()).ok());
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  EXPECT_THAT(ownFolder(folder.path()).error().text(), HasSubstr("the run folder is writable by others"));
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  ASSERT_EQ(chown(folder.path().c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(ownFolder(folder.path()).error().text(), HasSubstr("the run folder belongs to user 12345"));
}

TEST(OwnFolder, OfRootIsNotWhereAnotherUserOrAGroupCouldReplaceIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const fs::path his = folder.path() / "his", run = his / "run";
  fs::create_directories(run);
  ASSERT_TRUE(ownFolder(run).ok());
  ASSERT_EQ(chmod(run.c_str(), 0775), 0);
  ASSERT_EQ(chown(run.c_str(), 0, kStranger), 0);
  EXPECT_THAT(ownFolder(run).error().text(), HasSubstr("the run folder is writable by others"));
  ASSERT_EQ(chmod(run.c_str(), 0755), 0);
  ASSERT_EQ(chown(his.c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(ownFolder(run).error().text(),
              HasSubstr("the folder above the run folder belongs to user 12345"));
  setenv("SUDO_UID", "12345", 1);
  const bool called = ownFolder(run).ok();
  setenv("SUDO_UID", "12346", 1);
  const bool other = ownFolder(run).ok();
  unsetenv("SUDO_UID");
  EXPECT_TRUE(called) << "who may call sudo could do the same without us";
  EXPECT_FALSE(other);
}

TEST(PublicFile, IsOneThatEverybodyMayRead) {
  const TempDir folder;
  const fs::path file = folder.write("file", "text");
  const auto isRead = [&](mode_t above, mode_t own) {
    EXPECT_EQ(chmod(folder.path().c_str(), above), 0);
    EXPECT_EQ(chmod(file.c_str(), own), 0);
    const auto text = readPublicFile(file);
    return text.ok() && *text == "text";
  };
  EXPECT_TRUE(isRead(0755, 0644));
  EXPECT_FALSE(isRead(0755, 0640));
  EXPECT_FALSE(isRead(0755, 0600));
  EXPECT_EQ(isRead(0700, 0644), geteuid() != 0) << "root's own folder hides it";
  EXPECT_FALSE(readPublicFile(folder.path()).ok());
  EXPECT_FALSE(readPublicFile(folder.path() / "none").ok());
  EXPECT_FALSE(readPublicFile("/dev/zero").ok());
}

/// A folder of the plan's author that is a link for a moment: what counts is where the opened file lies.
TEST(PublicFile, IsNotInAClosedFolderThatALinkLedTo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root passes closed folders";
  const TempDir closed, his;
  closed.write("file", "secret");
  fs::create_directory(his.path() / "folder");
  write(his.path() / "folder" / "file", "text");
  fs::create_symlink(closed.path(), his.path() / "link");
  ASSERT_EQ(chmod(closed.path().c_str(), 0700), 0);
  ASSERT_EQ(chmod((closed.path() / "file").c_str(), 0644), 0);
  ASSERT_EQ(chmod(his.path().c_str(), 0755), 0);
  std::atomic<bool> done = false;
  std::thread swaps([&] {
    const fs::path a = his.path() / "folder", b = his.path() / "link";
    while (!done) renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  int read = 0, secrets = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto text = readPublicFile(his.path() / "folder" / "file");
    read += text.ok() ? 1 : 0;
    secrets += text.ok() && *text == "secret" ? 1 : 0;
  }
  done = true;
  swaps.join();
  EXPECT_GT(read, 0);
  EXPECT_EQ(secrets, 0);
}

TEST(OwnSubfolder, IsMadeOrTakenWhereNobodyElseCouldHaveMadeIt) {
  const TempDir run;
  const fs::path made = run.path() / "made";
  EXPECT_TRUE(makeOwnSubfolder(made, "output folder").ok());
  EXPECT_TRUE(makeOwnSubfolder(made, "output folder").ok()) << "it is this user's";
  ASSERT_EQ(chmod(made.c_str(), 01777), 0);
  EXPECT_THAT(makeOwnSubfolder(made, "output folder").error().text(),
              AllOf(HasSubstr("the output folder is writable by others"), HasSubstr(made.string())));
  const TempDir elsewhere;
  fs::create_symlink(elsewhere.path(), run.path() / "link");
  EXPECT_THAT(makeOwnSubfolder(run.path() / "link", "output folder").error().text(),
              HasSubstr("it is not a folder; another user may have put it there"));
  write(run.path() / "file", "");
  EXPECT_FALSE(makeOwnSubfolder(run.path() / "file", "output folder").ok());
  EXPECT_THAT(makeOwnSubfolder(run.path() / "not" / "there", "output folder").error().text(),
              HasSubstr("cannot make the output folder"));
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(chmod(made.c_str(), 0755), 0);
  ASSERT_EQ(chown(made.c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(
      makeOwnSubfolder(made, "output folder").error().text(),
      AllOf(HasSubstr("the output folder belongs to user 12345"), HasSubstr("choose another folder")));
}

TEST(OutputFolder, OfRootIsNotReachedByAnothersLink) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir roots, his;
  fs::create_symlink(roots.path(), his.path() / "link");
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(makeOutputFolder(his.path() / "link" / "new", "--out").error().text(),
              AllOf(HasSubstr("the folder above the output belongs to user 12345"),
                    HasSubstr("choose another folder with --out")));
  EXPECT_FALSE(outputFolder(his.path() / "link").ok());
  EXPECT_FALSE(ownFolder(his.path() / "link").ok());
  EXPECT_FALSE(writeFileAtomically(his.path() / "link" / "file", "text").ok());
  EXPECT_FALSE(writeFileAtomically(his.path() / "file", "text").ok());
  EXPECT_TRUE(fs::is_empty(roots.path()));
  fs::create_symlink(his.path(), roots.path() / "his");
  EXPECT_FALSE(outputFolder(roots.path() / "his").ok());
  EXPECT_FALSE(outputFolder(roots.path() / "his" / ".." / roots.path().filename()).ok());
}

TEST(OwnFolder, IsNotMadeInTheHomeOfWhoCalledSudo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir his, roots;
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  setenv("SUDO_UID", "12345", 1);
  const bool made = makeOwnFolder(his.path() / ".cache").ok();
  const bool output = makeOutputFolder(his.path() / "run", "--out").ok();
  unsetenv("SUDO_UID");
  EXPECT_FALSE(made);
  EXPECT_FALSE(fs::exists(his.path() / ".cache"));
  EXPECT_TRUE(output) << "he named it";
  EXPECT_TRUE(makeOwnFolder(roots.path() / "home" / ".cache").ok());
}

TEST(OutputFolder, OfRootMayBeReachedByRootsOwnLinksAndLieInASharedFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
  const TempDir roots, shared;
  ASSERT_EQ(chmod(shared.path().c_str(), 01777), 0);
  fs::create_directories(roots.path() / "real");
  fs::create_symlink("real", roots.path() / "link");
  fs::create_symlink("loop", roots.path() / "loop");
  EXPECT_EQ(*makeOutputFolder(roots.path() / "link" / ".." / "link" / "new/.", "--out"),
            roots.path() / "real" / "new");
  EXPECT_THAT(outputFolder(roots.path() / "loop").error().text(), HasSubstr("too many links"));
  EXPECT_TRUE(makeOutputFolder(shared.path() / "run", "--out").ok());
  EXPECT_TRUE(ownFolder(shared.path() / "run").ok());
  EXPECT_TRUE(writeFileAtomically(shared.path() / "file", "text").ok());
  fs::create_symlink(roots.path(), shared.path() / "his");
  ASSERT_EQ(lchown((shared.path() / "his").c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(outputFolder(shared.path() / "his").error().text(),
              HasSubstr("the link to the output belongs to user 12345"));
}

TEST(OutputFolder, OfOtherUsersIsAsTheyNameIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempDir his;
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  EXPECT_TRUE(asStranger([&] {
    fs::create_symlink(his.path(), his.path() / "link");
    const fs::path named = his.path() / "link" / "new" / "run";
    const auto made = makeOutputFolder(named, "--out");
    return made.ok() && *made == named && writeFileAtomically(named / "file", "text").ok();
  }));
}

TEST(Trust, GivesTheRealPathOfALinkThatOthersCanTurn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir folder, his;
  write(folder.path() / "plan", "root's");
  fs::create_symlink(folder.path() / "plan", his.path() / "plan");
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  const auto path = trustedPath(his.path() / "plan", "plan");
  ASSERT_TRUE(path.ok()) << path.error().text();
  EXPECT_EQ(*path, folder.path() / "plan");
}

/// Who is asked to act on another's folder must not be led to root's.
TEST(Trust, FollowsNoLinkOfAnotherUserToWhatIsActedOn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir folder, his;
  write(folder.path() / "plan", "root's");
  fs::create_symlink(folder.path(), his.path() / "run");
  fs::create_symlink(folder.path(), folder.path() / "own");
  EXPECT_TRUE(trustedPath(folder.path() / "own" / "plan", "plan", Above::kAll).ok());
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  for (const char* name : {"run", "run/plan"}) {
    EXPECT_FALSE(trustedPath(his.path() / name, "plan", Above::kAll).ok()) << name;
    EXPECT_FALSE(trustedTarget(his.path() / name, "plan", Above::kAll).ok()) << name;
  }
}

TEST(Trust, ALinkThatIsTurnedAllTheTimeNeverLeadsToAnothersFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TempDir folder, his;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  write(folder.path() / "plan", "root's");
  ASSERT_EQ(chown(his.path().c_str(), kStranger, kStranger), 0);
  const pid_t turner = fork();
  if (turner == 0) {
    if (setgid(kStranger) != 0 || setuid(kStranger) != 0 || chdir(his.path().c_str()) != 0) _exit(1);
    fs::create_directory("own");
    write("own/plan", "his");
    for (;;)
      for (const fs::path& target : {folder.path(), his.path() / "own"}) {
        fs::create_symlink(target, "next");
        fs::rename("next", "link");
      }
  }
  int read = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const auto path = trustedPath(his.path() / "link" / "plan", "plan");
    if (!path.ok()) continue;
    ++read;
    EXPECT_EQ(content(*path), "root's");
  }
  kill(turner, SIGKILL);
  waitpid(turner, nullptr, 0);
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace muster
