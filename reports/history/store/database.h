// SPDX-License-Identifier: Apache-2.0
// SQLite with Results: the only files that know its C interface are this one's and database.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "runner/core/names.h"
#include "runner/core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::history {

class Database;

/// One prepared statement. Parameters count from 1, columns from 0. The first failure is kept and returned by
/// row() or run(), so binding is a chain.
class Statement {
 public:
  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view value);
  /// Bytes of any kind, which stay as they are until run() or reset().
  Statement& bindBlob(std::string_view bytes);
  /// Goes to the next row; false when there is none. Statements without rows end here too.
  Result<bool> row();
  /// Runs to the end and makes it ready for the next use.
  Status run();
  void reset();

  /// Values of the present row; of NULL 0 and nothing. So is a value of another type than the one asked for,
  /// and the next row() says that the file is damaged: SQLite keeps any type in any column, and would
  /// convert.
  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] std::string text(int column) const;
  /// A value by its name; `unknown` where another word is there.
  template <Named E>
  [[nodiscard]] E named(int column, E unknown) const {
    return fromName<E>(text(column)).value_or(unknown);
  }
  /// Bytes as they were bound; valid until the next row() or reset().
  [[nodiscard]] std::string_view blob(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(Database* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  [[nodiscard]] Error damaged(const char* what) const;
  [[nodiscard]] bool hasType(int column, int type) const;

  int next_ = 1;
  int failed_ = 0;
  mutable bool otherType_ = false;
};

enum class Access { kRead, kWrite };

/// Steps of SQLite's machine that one statement may take: a gigabyte of runs needs a tenth.
inline constexpr uint64_t kMostSteps = 5'000'000'000;

/// An open database file. Waits up to 30 s where another process writes.
class Database {
 public:
  /// kRead: the file must be there, and nothing is changed but that the journal of a killed writer is played
  /// back. kWrite: it and its folder are made. A file that is no database, is damaged or is another program's
  /// is an error, and is left as it is. So is one where another user could put a journal, or has put one.
  static Result<Database> open(const std::filesystem::path& path, Access access,
                               uint64_t mostSteps = kMostSteps);

  Result<Statement> prepare(std::string_view sql);
  /// Runs statements that give no rows.
  Status execute(const std::string& sql);
  [[nodiscard]] int64_t lastInsert() const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// What SQLite says of `code`, with what to do about it.
  [[nodiscard]] Error error(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  explicit Database(std::filesystem::path path) : path_(std::move(path)) {}

  friend class Statement;

  /// Opens path_ by these flags of SQLite and reads from it; returns SQLite's code.
  int connect(int access);

  /// Ends a statement that takes too many steps, or that reads or puts into a temporary file more bytes than
  /// the file can hold: a damaged file may hold a view without end, or rows that share a value.
  struct Budget {
    uint64_t steps = 0;  ///< of the present statement
    uint64_t most = 0;
    uint64_t bytes = 0;  ///< of rows, texts and blobs
    uint64_t mostBytes = 0;
    void restart() { steps = bytes = 0; }
    static int count(void* budget);
  };

  std::filesystem::path path_;
  std::unique_ptr<Budget> budget_;  ///< outlives the handle
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A transaction that takes the write lock at once, and is undone unless commit() was called.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(other.database_) { other.database_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace muster::history
