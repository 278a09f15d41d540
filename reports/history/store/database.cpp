// SPDX-License-Identifier: Apache-2.0
// Wraps SQLite connections and statements.
#include "reports/history/store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <string_view>

#include "runner/system/trust.h"

namespace muster::history {
namespace fs = std::filesystem;
namespace {

constexpr int kMostValueBytes = 4 << 20;  // a run of eight GPUs has 15 KB
constexpr int kWaitMilliseconds = 30'000;
constexpr int kStepsPerCount = 10'000;
constexpr int kMostLinks = 8;

/// What a person can do about it.
const char* nextStep(int code) {
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return "the file is damaged or not a database and was not changed; restore a backup, or give another "
             "file with --db and add the runs again";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process is using it; try again later";
    case SQLITE_INTERRUPT:
      return "reading it takes too long for a Muster history; restore a backup, or give another file with "
             "--db and add the runs again";
    case SQLITE_FULL:
      return "the disk is full";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return "check the path and its permissions, or name another with --db";
    default:
      return "check the disk, or name another file with --db";
  }
}

/// What each temporary file of the statement that this thread runs may hold.
thread_local uint64_t mostTemporaryBytes = 0;

/// A sort and VACUUM write what they read to temporary files: of a damaged file that would fill the disk.
void boundTemporary(sqlite3_file* file) {
  static const sqlite3_io_methods* const usual = file->pMethods;  // all temporary files have the same
  static const sqlite3_io_methods own = [] {
    sqlite3_io_methods methods = *usual;
    methods.xWrite = [](sqlite3_file* to, const void* bytes, int size, sqlite3_int64 offset) {
      if (static_cast<uint64_t>(offset + size) > mostTemporaryBytes) return SQLITE_CORRUPT;
      return usual->xWrite(to, bytes, size, offset);
    };
    return methods;
  }();
  file->pMethods = &own;
}

/// SQLite's files without super-journals and write-ahead logs, neither of which Muster makes: who plays back
/// a journal that names a super-journal deletes that path, whatever it is. Temporary files are bounded.
const char* ownFiles() {
  static sqlite3_vfs* const usual = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs own = [] {
    sqlite3_vfs vfs = *usual;
    vfs.zName = "muster";
    vfs.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
      file->pMethods = nullptr;
      if ((flags & (SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL)) != 0) return SQLITE_CANTOPEN;
      const int code = usual->xOpen(usual, name, file, flags, out);
      if (code == SQLITE_OK && (flags & SQLITE_OPEN_DELETEONCLOSE) != 0) boundTemporary(file);
      return code;
    };
    return vfs;
  }();
  static const int registered = sqlite3_vfs_register(&own, 0);
  return registered == SQLITE_OK ? own.zName : nullptr;
}

/// Whether a journal is one of several databases at once: its last 8 bytes say so.
bool namesSuperJournal(const Fd& journal, off_t size) {
  constexpr std::string_view kMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  char end[kMagic.size()];
  return pread(journal.get(), end, sizeof end, size - static_cast<off_t>(sizeof end)) == sizeof end &&
         std::string_view(end, sizeof end) == kMagic;
}

/// Refuses what lies beside the file and cannot be a journal that a Muster left, before SQLite plays it back.
Status checkBeside(const fs::path& file) {
  const auto refused = [&](const char* suffix, const std::string& what) {
    return Error{ErrorCode::kUsage,
                 fmt::format("refused: {}; another user may have put it there: remove it, or name another "
                             "file with --db",
                             what),
                 file.string() + suffix};
  };
  struct stat own {
  }, info{};
  if (lstat((file.string() + "-wal").c_str(), &info) == 0)
    return refused("-wal", "it is a write-ahead log, which Muster does not make");
  const Fd journal(
      open((file.string() + "-journal").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!journal.valid() && errno == ENOENT) return {};
  const bool isLink = !journal.valid() && errno == ELOOP;
  if (!isLink && (!journal.valid() || fstat(journal.get(), &info) != 0))
    return refused("-journal", "this journal cannot be read: " + errnoText(errno));
  if (isLink || !S_ISREG(info.st_mode) || info.st_nlink > 1)
    return refused("-journal", "this journal is not a regular file of one name");
  const bool ofFilesOwner = stat(file.c_str(), &own) == 0 && info.st_uid == own.st_uid;
  if (!ofFilesOwner && info.st_uid != 0 && info.st_uid != geteuid())
    return refused("-journal", fmt::format("this journal belongs to user {}", info.st_uid));
  if (namesSuperJournal(journal, info.st_size))
    return refused("-journal", "this journal names another file to be deleted, as none of Muster's does");
  return {};
}

/// Where the file is. None is opened, not even to read it, in whose folder others could put a journal that
/// SQLite would then play back, or a link.
Result<fs::path> placeOf(const fs::path& named, Access access, int links = 0) {
  if (named == ":memory:") return named;
  const fs::path folder = named.has_parent_path() ? named.parent_path() : fs::path(".");
  if (access == Access::kWrite) MUSTER_CHECK_OK(makeOutputFolder(folder, "--db"));
  auto own = ownFolder(folder, "history's folder");
  if (!own.ok())
    return Error{own.error().code,
                 own.error().message + "; name another file with --db, or run this as that user",
                 own.error().where};
  const fs::path file = *own / named.filename();
  std::error_code none;
  const fs::path target = fs::read_symlink(file, none);
  if (!none && links < kMostLinks) return placeOf(*own / target, access, links + 1);
  // Opening a pipe would wait for its writer.
  if (fs::exists(file, none) && !fs::is_regular_file(file, none))
    return Error{ErrorCode::kUsage, "it is not a regular file; check the path, or name another with --db",
                 file.string()};
  return file;
}

/// What one statement may read: a few times what the file has on the disk, as joins repeat values.
uint64_t mostBytesOf(const fs::path& path) {
  constexpr uint64_t kRepeated = 8, kSmall = 64u << 20, kBlock = 512;
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return kSmall;
  return kSmall + kRepeated * kBlock * static_cast<uint64_t>(info.st_blocks);
}

}  // namespace

int Database::Budget::count(void* budget) {
  auto* own = static_cast<Budget*>(budget);
  own->steps += kStepsPerCount;
  return own->steps > own->most ? 1 : 0;
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Database::Close::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

Statement& Statement::bind(int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), next_++, value);
  if (failed_ == 0) failed_ = code;
  return *this;
}

Statement& Statement::bind(double value) {
  const int code = sqlite3_bind_double(statement_.get(), next_++, value);
  if (failed_ == 0) failed_ = code;
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  // An empty view may hold no pointer, which SQLite would take for NULL.
  const char* data = value.empty() ? "" : value.data();
  const int code =
      sqlite3_bind_text(statement_.get(), next_++, data, static_cast<int>(value.size()), SQLITE_TRANSIENT);
  if (failed_ == 0) failed_ = code;
  return *this;
}

Statement& Statement::bindBlob(std::string_view bytes) {
  const char* data = bytes.empty() ? "" : bytes.data();
  const int code =
      sqlite3_bind_blob(statement_.get(), next_++, data, static_cast<int>(bytes.size()), SQLITE_STATIC);
  if (failed_ == 0) failed_ = code;
  return *this;
}

Result<bool> Statement::row() {
  if (failed_ != 0) return database_->error(failed_);
  if (otherType_) return damaged("a value is of another type than its column");
  Database::Budget& budget = *database_->budget_;
  mostTemporaryBytes = budget.mostBytes;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    constexpr uint64_t kRow = 64;  // a row of numbers is held, too
    budget.bytes += kRow;
    for (int column = 0; column < sqlite3_data_count(statement_.get()); ++column) {
      const int type = sqlite3_column_type(statement_.get(), column);
      if (type == SQLITE_TEXT || type == SQLITE_BLOB)
        budget.bytes += static_cast<uint64_t>(sqlite3_column_bytes(statement_.get(), column));
      if (type == SQLITE_FLOAT && !std::isfinite(number(column)))
        return damaged("it holds an infinite number");
    }
    if (budget.bytes <= budget.mostBytes) return true;
    return damaged("its rows hold more than the file");
  }
  if (code == SQLITE_DONE) return false;
  return database_->error(code);
}

void Statement::reset() {
  database_->budget_->restart();
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  next_ = 1;
  failed_ = 0;
}

Status Statement::run() {
  for (;;) {
    auto more = row();
    if (!more.ok()) return std::move(more).error();
    if (!*more) break;
  }
  reset();
  return {};
}

Error Statement::damaged(const char* what) const {
  return {ErrorCode::kProtocol, fmt::format("history: damaged: {}; restore a copy of it", what),
          database_->path_.string()};
}

bool Statement::hasType(int column, int type) const {
  const int is = sqlite3_column_type(statement_.get(), column);
  if (is == type || (type == SQLITE_FLOAT && is == SQLITE_INTEGER)) return true;
  otherType_ = otherType_ || is != SQLITE_NULL;
  return false;
}

int64_t Statement::integer(int column) const {
  return hasType(column, SQLITE_INTEGER) ? sqlite3_column_int64(statement_.get(), column) : 0;
}

double Statement::number(int column) const {
  return hasType(column, SQLITE_FLOAT) ? sqlite3_column_double(statement_.get(), column) : 0;
}

std::string Statement::text(int column) const {
  if (!hasType(column, SQLITE_TEXT)) return "";
  const auto* data = sqlite3_column_text(statement_.get(), column);
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? "" : std::string(reinterpret_cast<const char*>(data), bytes);
}

std::string_view Statement::blob(int column) const {
  if (!hasType(column, SQLITE_BLOB)) return {};
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(data), bytes);
}

Error Database::error(int code) const {
  // Of a value that could not be bound the connection says nothing.
  const bool told = handle_ && sqlite3_errcode(handle_.get()) != SQLITE_OK;
  const char* what = told ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const bool damaged = (code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_CORRUPT;
  return {damaged ? ErrorCode::kProtocol : ErrorCode::kUsage,
          fmt::format("history: {}; {}", what, nextStep(code)), path_.string()};
}

Result<Database> Database::open(const fs::path& named, Access access, uint64_t mostSteps) {
  std::error_code failed;
  if (access == Access::kRead && !fs::exists(named, failed))
    return Error{ErrorCode::kNotFound, "no history yet; start one with `muster history add RUN`",
                 named.string()};
  MUSTER_TRY(const fs::path path, placeOf(named, access));
  if (path != ":memory:") MUSTER_CHECK_OK(checkBeside(path));
  Database database(path);
  database.budget_ = std::make_unique<Budget>();
  database.budget_->most = mostSteps;
  database.budget_->mostBytes = mostBytesOf(path);
  int code = database.connect(access == Access::kRead ? SQLITE_OPEN_READONLY
                                                      : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  // Whoever wrote it was killed: his journal has to be played back first.
  if (code == SQLITE_READONLY_ROLLBACK) code = database.connect(SQLITE_OPEN_READWRITE);
  if (code != SQLITE_OK) return database.error(code);
  return database;
}

int Database::connect(int access) {
  handle_.reset();
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &handle, access | SQLITE_OPEN_NOFOLLOW, ownFiles());
  handle_.reset(handle);
  if (code != SQLITE_OK) return code;
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMostValueBytes);
  sqlite3_busy_timeout(handle, kWaitMilliseconds);
  sqlite3_progress_handler(handle, kStepsPerCount, Budget::count, budget_.get());
  // A hostile file must not run code of its own, and a power cut must not lose a run.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  budget_->restart();
  // The last is the first that reads the file: what is no database is found here.
  return sqlite3_exec(handle,
                      "PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; "
                      "SELECT count(*) FROM sqlite_master",
                      nullptr, nullptr, nullptr);
}

Result<Statement> Database::prepare(std::string_view sql) {
  budget_->restart();
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(this, statement);
}

Status Database::execute(const std::string& sql) {
  budget_->restart();
  mostTemporaryBytes = budget_->mostBytes;
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code);
  return {};
}

int64_t Database::lastInsert() const {
  return sqlite3_last_insert_rowid(handle_.get());
}

Result<Transaction> Transaction::begin(Database& database) {
  MUSTER_CHECK_OK(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // What began and was not committed is undone; if even that fails, SQLite undoes it at the next opening.
  if (database_ != nullptr) static_cast<void>(database_->execute("ROLLBACK"));
}

Status Transaction::commit() {
  MUSTER_CHECK_OK(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace muster::history
