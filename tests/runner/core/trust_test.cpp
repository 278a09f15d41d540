// SPDX-License-Identifier: Apache-2.0
// What another user could change, tried by a process of another user.
#include "runner/core/trust.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include "tests/support/process.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
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

TEST(OwnFolder, IsNoStrangersAndNotEverybodys) {
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
