// SPDX-License-Identifier: Apache-2.0
// Wraps SQLite connections and statements.
#include "reports/history/store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include "runner/core/trust.h"

namespace muster::history {
namespace fs = std::filesystem;
namespace {

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

/// Where the file is. Root opens none, not even to read it, in whose folder others could put a journal that
/// SQLite would then play back, or a link.
Result<fs::path> placeOf(const fs::path& named, Access access, int links = 0) {
  if (named == ":memory:") return named;
  const fs::path folder = named.has_parent_path() ? named.parent_path() : fs::path(".");
  std::error_code none;
  if (geteuid() != 0) {
    if (access == Access::kWrite) fs::create_directories(folder, none);
    return named;
  }
  if (access == Access::kWrite) MUSTER_CHECK_OK(makeOutputFolder(folder, "--db"));
  auto own = ownFolder(folder, "history's folder");
  if (!own.ok())
    return Error{own.error().code,
                 own.error().message + "; name another file with --db, or run this as that user",
                 own.error().where};
  const fs::path file = *own / named.filename();
  const fs::path target = fs::read_symlink(file, none);
  return none || links == kMostLinks ? file : placeOf(*own / target, access, links + 1);
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
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->error(code);
}

void Statement::reset() {
  database_->budget_->steps = 0;
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

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_.get(), column);
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? "" : std::string(reinterpret_cast<const char*>(data), bytes);
}

std::string_view Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return data == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(data), bytes);
}

Error Database::error(int code) const {
  const char* what = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
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
  Database database(path);
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | (access == Access::kWrite ? SQLITE_OPEN_CREATE : 0) |
                    (geteuid() == 0 ? SQLITE_OPEN_NOFOLLOW : 0);
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return database.error(code);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kWaitMilliseconds);
  database.budget_ = std::make_unique<Budget>(Budget{0, mostSteps});
  sqlite3_progress_handler(handle, kStepsPerCount, Budget::count, database.budget_.get());
  // A hostile file must not run code of its own, and a power cut must not lose a run.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  MUSTER_CHECK_OK(
      database.execute("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL"));
  // The first that reads the file: what is no database is found here.
  MUSTER_TRY(Statement check, database.prepare("SELECT count(*) FROM sqlite_master"));
  MUSTER_CHECK_OK(check.run());
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  budget_->steps = 0;
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(this, statement);
}

Status Database::execute(const std::string& sql) {
  budget_->steps = 0;
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
