// SPDX-License-Identifier: Apache-2.0
// The history's file in trouble: of an old or a newer version, torn, foreign, where nobody may write, on a
// full disk, with several writers at once.
#include "reports/history/store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/reports/history/history_test.h"

namespace muster::history {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// The tables of version 1, as the first release made them. Never change this: files like it exist.
constexpr const char* kVersion1 = R"(
CREATE TABLE run (
  number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL, node TEXT NOT NULL,
  started REAL NOT NULL, finished REAL NOT NULL, plan TEXT NOT NULL, plan_sha256 TEXT NOT NULL,
  profile TEXT NOT NULL, profile_sha256 TEXT NOT NULL, backend TEXT NOT NULL, simulated INTEGER NOT NULL,
  scenario TEXT NOT NULL, acceptance TEXT NOT NULL, exit_code INTEGER NOT NULL, tool TEXT NOT NULL,
  path TEXT NOT NULL, added REAL NOT NULL);
CREATE INDEX run_of_node ON run (node, started);
CREATE TABLE figure_key (
  number INTEGER PRIMARY KEY, stage TEXT NOT NULL, case_id TEXT NOT NULL, metric TEXT NOT NULL,
  unit TEXT NOT NULL, labels TEXT NOT NULL, direction TEXT NOT NULL,
  UNIQUE (stage, case_id, metric, unit, labels, direction));
CREATE TABLE figure (
  run INTEGER NOT NULL REFERENCES run, key INTEGER NOT NULL REFERENCES figure_key, device TEXT NOT NULL,
  serial TEXT NOT NULL, n INTEGER NOT NULL, median REAL NOT NULL, cv REAL NOT NULL);
CREATE INDEX figure_of_run ON figure (run);
CREATE TABLE fact (run INTEGER NOT NULL REFERENCES run, device TEXT NOT NULL, name TEXT NOT NULL,
  value TEXT NOT NULL);
CREATE INDEX fact_of_run ON fact (run);
CREATE TABLE deviation (run INTEGER NOT NULL REFERENCES run, outcome TEXT NOT NULL, stage TEXT NOT NULL,
  metric TEXT NOT NULL, device TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX deviation_of_run ON deviation (run);
INSERT INTO run VALUES (7, 'ab12cd34', 'n17-of-old', 'n17', 86400, 90000, 'node-quick', 'p', 'h100', 'q', 'cuda',
  0, '', 'accepted', 0, '0.1', '/old/record.json', 90001);
INSERT INTO figure_key VALUES (1, 'gemm', 'gemm[]', 'compute.gemm_throughput', 'FLOP/s', 'dtype=bf16', 'higher');
INSERT INTO figure VALUES (7, 1, 'gpu0', 'S0', 5, 7e14, 0.001);
INSERT INTO fact VALUES (7, '', 'software.driver', '550.1');
INSERT INTO deviation VALUES (7, 'warn', 'gemm', '', 'gpu0', 'near');
PRAGMA user_version = 1;
PRAGMA application_id = 1297437524;
)";

class HistoryFile : public HistoryTest {
 protected:
  void makeVersion1() {
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database.ok()) << database.error().text();
    const Status made = database->execute(kVersion1);
    ASSERT_TRUE(made.ok()) << made.error().text();
  }
  int64_t version() {
    auto database = Database::open(file(), Access::kRead);
    auto statement = database->prepare("PRAGMA user_version");
    return *statement->row() ? statement->integer(0) : -1;
  }
  std::string bytes() { return readFile(file()).value(); }
};

TEST_F(HistoryFile, OfRootIsNotWhereAnotherUserCouldLeadIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const testing::TempDir roots, his;
  const fs::path target = roots.path() / "target.sqlite", link = his.path() / "h.sqlite";
  fs::create_symlink(target, link);
  fs::create_symlink(roots.path(), his.path() / "folder");
  ASSERT_EQ(chown(his.path().c_str(), 12345, 12345), 0);
  for (const fs::path& path : {link, his.path() / "folder" / "h.sqlite", his.path() / "new" / "h.sqlite"})
    EXPECT_THAT(Database::open(path, Access::kWrite).error().text(),
                ::testing::AllOf(::testing::HasSubstr("belongs to user 12345"), ::testing::HasSubstr("--db")))
        << path;
  EXPECT_TRUE(fs::is_empty(roots.path()));
  fs::create_symlink("target.sqlite", roots.path() / "h.sqlite");
  EXPECT_TRUE(Database::open(roots.path() / "h.sqlite", Access::kWrite).ok()) << "root's own link";
  EXPECT_TRUE(fs::exists(target));
  EXPECT_FALSE(Database::open(link, Access::kRead).ok()) << "he could put a journal beside it";
}

TEST_F(HistoryFile, WithAnInfiniteNumberIsDamaged) {
  makeVersion1();
  {
    auto store = Store::open(file(), Access::kWrite);
    ASSERT_TRUE(store.ok()) << store.error().text();
  }
  {
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database->execute("UPDATE run SET started = 9e999").ok());
  }
  auto store = Store::open(file(), Access::kRead);
  ASSERT_TRUE(store.ok()) << store.error().text();
  EXPECT_THAT(store->runs({}).error().text(), HasSubstr("it holds an infinite number"));
}

/// SQLite sorts texts behind all numbers, and would give numbers of them: days that go back.
TEST_F(HistoryFile, WhoseColumnHoldsAnotherTypeIsDamaged) {
  makeVersion1();
  ASSERT_EQ(errorOf(Access::kWrite), "");
  for (const char* change : {"started = '1800000000x'", "started = x'2d31'", "number = 7, simulated = 'yes'",
                             "number = 7, simulated = 0.5", "simulated = 0, node = x'6e3137'"}) {
    {
      auto database = Database::open(file(), Access::kWrite);
      ASSERT_TRUE(database->execute(std::string("UPDATE run SET ") + change).ok()) << change;
    }
    auto store = Store::open(file(), Access::kRead);
    ASSERT_TRUE(store.ok()) << store.error().text();
    const auto runs = store->runs({});
    ASSERT_FALSE(runs.ok()) << change;
    EXPECT_THAT(runs.error().text(), HasSubstr("damaged: a value is of another type than its column"));
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database->execute("UPDATE run SET started = 86400, simulated = 0, node = 'n17'").ok());
  }
}

/// What `work` says in a child of this process; `before` is done in it first.
std::string inChild(const std::function<void()>& before, const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    before();
    const std::string said = work();
    const bool written = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char part[512];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? said : said + " (the child failed)";
}

/// Somebody for whom permissions count.
void becomeNobody() {
  if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
}

/// A number as journals have it.
std::string bigEndian(uint32_t number) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xff);
  return text;
}

/// A journal that a writer would have left who was killed, and that names `victim` as its super-journal.
std::string journalNaming(const fs::path& database, const fs::path& victim) {
  constexpr uint32_t kPage = 4096, kSector = 512;
  const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", name = victim.string();
  const auto pages = static_cast<uint32_t>(fs::file_size(database) / kPage);
  std::string text = magic;
  for (const uint32_t number : {0u, 1u, pages, kSector, kPage}) text += bigEndian(number);
  text.resize(kSector, '\0');
  uint32_t sum = 0;
  for (const char c : name) sum += static_cast<uint32_t>(static_cast<signed char>(c));
  return text + bigEndian(0x40000000 / kPage + 1) + name + bigEndian(static_cast<uint32_t>(name.size())) +
         bigEndian(sum) + magic;
}

TEST_F(HistoryFile, WhoseJournalNamesAnotherFileDeletesNothing) {
  add(*std::make_unique<Store>(open()), node(1));
  const fs::path victim = dir_.path() / "victim", journal = file().string() + "-journal";
  dir_.write("victim", "kept");
  const std::string planted = journalNaming(file(), victim), before = bytes();
  for (const Access access : {Access::kRead, Access::kWrite}) {
    dir_.write("state/history.sqlite-journal", planted);
    EXPECT_THAT(errorOf(access), ::testing::AllOf(HasSubstr("-journal: refused: this journal names another"),
                                                  HasSubstr("remove it")));
    EXPECT_TRUE(fs::exists(victim));
    EXPECT_EQ(readFile(journal).value(), planted);
    EXPECT_EQ(bytes(), before);
  }
}

/// Where the journal comes after the check, SQLite itself reads it.
TEST_F(HistoryFile, WhoseJournalComesLateDeletesNothing) {
  Store store = open();
  add(store, node(1));
  dir_.write("victim", "kept");
  dir_.write("state/history.sqlite-journal", journalNaming(file(), dir_.path() / "victim"));
  static_cast<void>(store.runs({}));
  static_cast<void>(store.add(node(2), names_, 1));
  EXPECT_TRUE(fs::exists(dir_.path() / "victim"));
}

TEST_F(HistoryFile, BesideWhichLiesWhatNoMusterLeftIsRefused) {
  add(*std::make_unique<Store>(open()), node(1));
  const fs::path journal = file().string() + "-journal", log = file().string() + "-wal";
  const auto refused = [&](const char* why) {
    for (const Access access : {Access::kRead, Access::kWrite}) EXPECT_THAT(errorOf(access), HasSubstr(why));
    fs::remove(journal);
  };
  fs::create_symlink(file(), journal);
  refused("not a regular file of one name");
  ASSERT_EQ(mkfifo(journal.c_str(), 0666), 0);
  refused("not a regular file of one name");
  dir_.write("victim", "");
  fs::create_hard_link(dir_.path() / "victim", journal);
  refused("not a regular file of one name");
  if (geteuid() == 0) {
    dir_.write("state/history.sqlite-journal", "his");
    ASSERT_EQ(chown(journal.c_str(), 12345, 12345), 0);
    refused("this journal belongs to user 12345");
  }
  dir_.write("state/history.sqlite-wal", "");
  refused("a write-ahead log, which Muster does not make");
  fs::remove(log);
  EXPECT_EQ(open(Access::kRead).runs({})->size(), 1u);
}

/// Whoever opens a pipe waits for its writer.
TEST_F(HistoryFile, ThatIsNoRegularFileIsRefused) {
  fs::create_directories(file().parent_path());
  const fs::path other = file().parent_path() / "other";
  const auto refused = [&] {
    for (const Access access : {Access::kRead, Access::kWrite})
      EXPECT_THAT(errorOf(access),
                  HasSubstr("it is not a regular file; check the path, or name another with --db"));
  };
  ASSERT_EQ(mkfifo(other.c_str(), 0600), 0);
  fs::create_symlink(other, file());
  refused();
  fs::rename(other, file());
  refused();
  fs::remove(file());
  fs::create_directory(file());
  refused();
}

/// A writer that was killed in the middle of a transaction.
TEST_F(HistoryFile, OfAKilledWriterIsAsBeforeItsTransaction) {
  for (const Access access : {Access::kRead, Access::kWrite}) {
    fs::remove(file());
    add(*std::make_unique<Store>(open()), node(1));
    const std::string before = bytes();
    const pid_t child = fork();
    if (child == 0) {
      auto database = Database::open(file(), Access::kWrite);
      // So small a cache that changed pages are written before the end.
      const bool begun =
          database.ok() && database
                               ->execute(
                                   "PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE run SET node = 'no'; "
                                   "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT "
                                   "2000) INSERT INTO fact SELECT 1, '', 'name', x FROM c")
                               .ok();
      _exit(begun ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    ASSERT_TRUE(bytes() != before) << "nothing was written";
    ASSERT_TRUE(fs::exists(file().string() + "-journal"));
    {
      Store store = open(access);
      ASSERT_EQ(store.runs({})->size(), 1u);
      EXPECT_EQ(store.runs({})->front().node, "n17");
      EXPECT_EQ(store.facts(store.runs({})->front())->size(), 2u);
    }
    EXPECT_FALSE(fs::exists(file().string() + "-journal"));
  }
}

TEST_F(HistoryFile, ThatIsReadIsNotOpenedForWriting) {
  open();
  auto database = Database::open(file(), Access::kRead);
  EXPECT_THAT(database->execute("DELETE FROM run").error().text(), HasSubstr("readonly"));
}

TEST_F(HistoryFile, WhereOthersCouldPutAJournalIsNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  add(*std::make_unique<Store>(open()), node(1));
  const fs::path folder = file().parent_path();
  fs::permissions(dir_.path(), fs::perms(0755));
  const auto said = [&] {
    return inChild(becomeNobody, [&] {
      const auto store = Store::open(file(), Access::kRead);
      return store.ok() ? std::string("read") : store.error().text();
    });
  };
  EXPECT_EQ(said(), "read");
  ASSERT_EQ(chown(folder.c_str(), 12345, 12345), 0);
  EXPECT_THAT(said(), HasSubstr("the history's folder belongs to user 12345"));
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  fs::permissions(folder, fs::perms(0777));
  EXPECT_THAT(said(), HasSubstr("the history's folder is writable by others"));
}

TEST_F(HistoryFile, WhoseTableIsAViewWithoutEndIsRefused) {
  ASSERT_TRUE(add(*std::make_unique<Store>(open()), node(1)));
  for (const char* change :
       {"ALTER TABLE run RENAME TO kept; CREATE VIEW run AS WITH RECURSIVE c(number) AS (SELECT 1 UNION ALL "
        "SELECT number + 1 FROM c) SELECT number, '' sha256, '' run_id, 'n17' node, 0 started, 0 finished, "
        "'' "
        "plan, '' plan_sha256, '' profile, '' profile_sha256, '' backend, 0 simulated, '' scenario, '' "
        "acceptance, 0 exit_code, '' tool, '' path, 0 added FROM c",
        "DROP VIEW run; ALTER TABLE kept RENAME TO run; CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE "
        "FROM run; END",
        "DROP TRIGGER t; PRAGMA user_version = -1", "PRAGMA user_version = 1"}) {
    {
      auto database = Database::open(file(), Access::kWrite);
      const Status changed = database->execute(change);
      ASSERT_TRUE(changed.ok()) << changed.error().text();
    }
    const std::string before = bytes();
    for (const Access access : {Access::kRead, Access::kWrite})
      EXPECT_THAT(errorOf(access), HasSubstr("its tables are not those of a Muster history")) << change;
    EXPECT_EQ(bytes(), before);
  }
}

/// In a damaged file many rows may share one value.
TEST_F(HistoryFile, AStatementThatReadsMoreThanTheFileHoldsIsEnded) {
  auto database = Database::open(file(), Access::kWrite);
  ASSERT_TRUE(database.ok()) << database.error().text();
  const auto failureOf = [&](const std::string& sql) -> std::string {
    auto statement = database->prepare(sql);
    if (!statement.ok()) return statement.error().text();
    for (int rows = 0; rows < 2'000'000; ++rows) {
      const auto more = statement->row();
      if (!more.ok()) return more.error().text();
      if (!*more) return "";
    }
    return "";
  };
  const std::string many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) ";
  EXPECT_EQ(failureOf(many + "SELECT printf('%.*c', 1000, 'x') FROM n"), "");
  EXPECT_THAT(failureOf(many + "SELECT printf('%.*c', 1000000, 'x') FROM n"),
              HasSubstr("its rows hold more than the file"));
  const std::string endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) ";
  EXPECT_THAT(failureOf(endless + "SELECT i, NULL FROM n"), HasSubstr("its rows hold more than the file"));
  EXPECT_THAT(failureOf("SELECT zeroblob(5000000)"), HasSubstr("too big"));
}

/// The history `text` with the rows of the page `root` some 400,000 times: it leads to one page again and
/// again, and that to the rows.
std::string withRowsWithoutEnd(std::string text, size_t root) {
  constexpr uint32_t kPage = 4096, kCells = 650;
  const auto pageTo = [&](uint32_t below) {
    // Every cell is the one at the page's end.
    const std::string cell = bigEndian(below) + '\1', at = bigEndian(kPage - 5).substr(2), zeros(2, '\0');
    std::string page = '\5' + zeros + bigEndian(kCells).substr(2) + at + '\0' + bigEndian(below);
    for (uint32_t i = 0; i < kCells; ++i) page += at;
    page.resize(kPage - cell.size(), '\0');
    return page + cell;
  };
  const auto pages = static_cast<uint32_t>(text.size() / kPage);
  const size_t begin = (root - 1) * kPage;
  text += text.substr(begin, kPage);
  text += pageTo(pages + 1);
  text.replace(begin, kPage, pageTo(pages + 2));
  return text.replace(28, 4, bigEndian(pages + 2));
}

TEST_F(HistoryFile, WhoseRowsAreWithoutEndFillsNoDisk) {
  {
    Store store = open();
    for (int day = 0; day < 4; ++day) add(store, node(day));
  }
  const auto rootOf = [&](const std::string& table) {
    auto database = Database::open(file(), Access::kRead);
    auto statement = database->prepare("SELECT rootpage FROM sqlite_master WHERE name = '" + table + "'");
    return *statement->row() ? static_cast<size_t>(statement->integer(0)) : 1;
  };
  dir_.write("state/history.sqlite", withRowsWithoutEnd(bytes(), rootOf("run")));
  const auto boundFiles = [] {
    constexpr rlim_t kMost = 100 << 20;
    const rlimit most{kMost, kMost};
    if (setrlimit(RLIMIT_FSIZE, &most) != 0) _exit(2);
  };
  const auto saidBy = [&](const std::function<Status(Store&)>& work) {
    return inChild(boundFiles, [&] {
      auto store = Store::open(file(), Access::kWrite);
      const Status status = store.ok() ? work(*store) : Status(store.error());
      return status.ok() ? std::string("done") : status.error().text();
    });
  };
  const auto list = [](Store& store) {
    const auto runs = store.runs({});
    return runs.ok() ? Status() : Status(runs.error());
  };
  EXPECT_THAT(saidBy(list), HasSubstr("the file is damaged"));
  EXPECT_THAT(saidBy([](Store& store) { return store.compact(); }), HasSubstr("the file is damaged"));
}

TEST_F(HistoryFile, AStatementWithoutEndIsEnded) {
  auto database = Database::open(file(), Access::kWrite, 1'000'000);
  auto endless = database->prepare(
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
  const auto row = endless->row();
  ASSERT_FALSE(row.ok());
  EXPECT_THAT(row.error().text(), HasSubstr("takes too long for a Muster history"));
  // The next one has steps of its own.
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(database
                    ->prepare("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000) "
                              "SELECT count(*) FROM c")
                    ->row()
                    .ok());
}

TEST_F(HistoryFile, OfTheOldestVersionIsBroughtUpToDateAndKeepsEverything) {
  makeVersion1();
  {
    Store store = open();
    const auto runs = store.runs({});
    ASSERT_TRUE(runs.ok() && runs->size() == 1);
    EXPECT_EQ(runs->front().number, 7);
    EXPECT_EQ(runs->front().acceptance, Acceptance::kAccepted);
    EXPECT_EQ(runs->front().path, "/old/record.json");
    const auto points = store.pointsOf(runs->front());
    ASSERT_TRUE(points.ok() && points->size() == 1);
    EXPECT_EQ(points->front().device, (Device{"gpu0", "S0"}));
    EXPECT_EQ(points->front().median, 7e14);
    EXPECT_EQ(points->front().n, 5);
    EXPECT_EQ(store.facts(runs->front())->front().value, "550.1");
    EXPECT_EQ(store.deviations(runs->front())->front().detail, "near");
    // What only the new version has works beside it, with the old figure's key.
    EXPECT_TRUE(add(store, node(9)));
    EXPECT_TRUE(store.fleets().ok());
    EXPECT_EQ(valuesOf(store, {"n17", 0}).size(), 2u);
  }
  EXPECT_EQ(version(), 4);
  Store again = open(Access::kRead);
  EXPECT_EQ(again.runs({})->size(), 2u);
}

TEST_F(HistoryFile, IsBroughtUpToDateOnceByWritersThatComeTogether) {
  makeVersion1();
  std::vector<pid_t> children;
  for (int writer = 0; writer < 4; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = Store::open(file(), Access::kWrite);
      _exit(store.ok() && store->add(node(100 + writer), names_, 1).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(version(), 4);
  EXPECT_EQ(open(Access::kRead).runs({})->size(), 5u);
}

TEST_F(HistoryFile, ThatCannotBeBroughtUpToDateStaysOfItsVersion) {
  makeVersion1();
  {
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database->execute("CREATE TABLE fleet_node (somebody TEXT)").ok());
  }
  EXPECT_THAT(errorOf(Access::kWrite), HasSubstr("its tables are not those of a Muster history"));
  EXPECT_EQ(version(), 1) << "all of it or nothing";
  auto database = Database::open(file(), Access::kRead);
  EXPECT_FALSE(database->prepare("SELECT * FROM fleet").ok());
}

TEST_F(HistoryFile, OfANewerVersionIsRefusedInOneLineAndLeftAsItIs) {
  open();
  {
    auto database = Database::open(file(), Access::kWrite);
    ASSERT_TRUE(database->execute("PRAGMA user_version = 5").ok());
  }
  const std::string before = bytes();
  for (const Access access : {Access::kRead, Access::kWrite}) {
    const std::string error = errorOf(access);
    EXPECT_THAT(error, HasSubstr("has version 5 and this Muster knows 4"));
    EXPECT_THAT(error, HasSubstr("written by a newer version; use that version"));
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_EQ(bytes(), before);
}

TEST_F(HistoryFile, ThatIsTruncatedIsNamedAndLeftAsItIs) {
  {
    Store store = open();
    for (int day = 0; day < 60; ++day) add(store, node(day));
  }
  const std::string whole = bytes();
  // In the header, in the middle of the schema, and in the middle of the data.
  for (const size_t size : {size_t{50}, size_t{5000}, whole.size() / 2}) {
    const std::string torn = whole.substr(0, size);
    dir_.write("state/history.sqlite", torn);
    auto store = Store::open(file(), Access::kRead);
    std::string error;
    if (!store.ok()) {
      error = store.error().text();
    } else {
      auto reader = SeriesReader::open(*store, {});
      const Status read = reader.ok() ? reader->each([](const auto&) {}) : Status(reader.error());
      if (!read.ok()) error = read.error().text();
    }
    EXPECT_THAT(error, HasSubstr("history.sqlite")) << size;
    EXPECT_THAT(error, HasSubstr("was not changed")) << size;
    EXPECT_EQ(bytes(), torn) << size;
  }
}

TEST_F(HistoryFile, OfAnotherKindIsNamedAndLeftAsItIs) {
  for (const std::string& text : {std::string("{\"schema\": 1}"), std::string(100, '\0')}) {
    dir_.write("state/history.sqlite", text);
    EXPECT_NE(errorOf(Access::kWrite), "");
    EXPECT_THAT(errorOf(Access::kRead), HasSubstr("--db"));
    EXPECT_EQ(bytes(), text);
  }
  fs::remove(file());
  fs::create_directories(file());
  EXPECT_THAT(errorOf(Access::kWrite), HasSubstr("check the path"));
}

TEST_F(HistoryFile, InAFolderWhereNobodyMayWriteCanBeReadAndSaysWhyItCannotBeKept) {
  {
    Store store = open();
    add(store, node(1));
  }
  fs::permissions(dir_.path(), fs::perms(0755));
  fs::permissions(file(), fs::perms(0444));
  fs::permissions(file().parent_path(), fs::perms(0555));
  EXPECT_EQ(inChild(becomeNobody,
                    [&] {
                      auto store = Store::open(file(), Access::kRead);
                      return store.ok() ? std::to_string(store->runs({})->size()) : store.error().text();
                    }),
            "1");
  const std::string refused = inChild(becomeNobody, [&] {
    auto store = Store::open(file(), Access::kWrite);
    if (!store.ok()) return store.error().text();
    const auto added = store->add(node(2), names_, 1);
    return added.ok() ? std::string("kept") : added.error().text();
  });
  EXPECT_THAT(refused, HasSubstr("check the path and its permissions"));
  EXPECT_THAT(refused, HasSubstr("history.sqlite"));
  const std::string none = inChild(becomeNobody, [&] {
    const auto store = Store::open(file().parent_path() / "new/history.sqlite", Access::kWrite);
    return store.ok() ? std::string("made") : store.error().text();
  });
  EXPECT_THAT(none, HasSubstr("cannot make it: Permission denied; choose another folder with --db"));
  fs::permissions(file().parent_path(), fs::perms(0755));
}

TEST_F(HistoryFile, OfAnOldVersionWhereNobodyMayWriteSaysSo) {
  makeVersion1();
  fs::permissions(dir_.path(), fs::perms(0755));
  fs::permissions(file(), fs::perms(0444));
  fs::permissions(file().parent_path(), fs::perms(0555));
  const std::string said = inChild(becomeNobody, [&] {
    const auto store = Store::open(file(), Access::kRead);
    return store.ok() ? std::string("open") : store.error().text();
  });
  EXPECT_THAT(said, HasSubstr("bringing this history from version 1 to 4"));
  EXPECT_THAT(said, HasSubstr("permissions"));
  fs::permissions(file().parent_path(), fs::perms(0755));
}

TEST_F(HistoryFile, OnAFullDiskKeepsWhatItHadAndSaysWhatIsWrong) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: a small file system is mounted for it";
  fs::create_directories(file().parent_path());
  const auto smallDisk = [&] {
    // Seen by this child alone, and gone with it.
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", file().parent_path().c_str(), "tmpfs", 0, "mode=0755,size=256k") != 0)
      _exit(3);
  };
  const std::string said = inChild(smallDisk, [&] {
    auto store = Store::open(file(), Access::kWrite);
    if (!store.ok()) return store.error().text();
    size_t kept = 0;
    std::string error;
    for (int day = 0; day < 5000 && error.empty(); ++day) {
      const auto added = store->add(node(day), names_, 1);
      if (added.ok())
        ++kept;
      else
        error = added.error().text();
    }
    auto again = Store::open(file(), Access::kRead);
    const bool all =
        again.ok() && kept > 10 && again->runs({})->size() == kept && valuesOf(*again).size() == kept;
    return (all ? "all that was kept is there; " : "something is lost; ") + error;
  });
  EXPECT_THAT(said, HasSubstr("all that was kept is there"));
  EXPECT_THAT(said, HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace muster::history
