// SPDX-License-Identifier: Apache-2.0
// Result<T> and Error: how every expected failure travels through Muster.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace muster {

/// What kind of failure this is; the application maps it to an exit code.
enum class ErrorCode {
  kUsage,        ///< the user's input is wrong: a plan, a profile, an option (exit 2)
  kNotFound,     ///< a file, library, device or test that was asked for is not there
  kUnsupported,  ///< it is there, but this machine, backend or build cannot do it
  kIo,           ///< the operating system refused to read or write
  kProtocol,     ///< a peer (plugin, rank, record) broke the agreed format
  kTimeout,      ///< a deadline passed
  kCorrupt,      ///< data that must be equal was not, or a file is torn
  kPeer,         ///< another rank of the group failed, did not answer or sent nonsense: says nothing about this one
  kInternal,     ///< a fault of Muster itself (exit 4)
};

/// An expected failure: what went wrong, where, and through which steps it was reached.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  ///< what was found, what was wanted, and the next step
  std::string where;    ///< file:line:column, a path or a name; may be empty

  /// Prefixes the message with the step during which the failure happened ("loading plan x.toml").
  [[nodiscard]] Error context(const std::string& step) && {
    message = step + ": " + message;
    return std::move(*this);
  }
  /// One line for people: "where: message".
  [[nodiscard]] std::string text() const { return where.empty() ? message : where + ": " + message; }
};

/// A value or the Error that took its place.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

  /// Adds context to the error, if there is one.
  [[nodiscard]] Result<T> context(const std::string& step) && {
    if (ok()) return std::move(*this);
    return std::get<1>(std::move(state_)).context(step);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const& { return *error_; }
  [[nodiscard]] Error&& error() && { return *std::move(error_); }
  [[nodiscard]] Status context(const std::string& step) && {
    if (ok()) return {};
    return Status(std::move(*error_).context(step));
  }

 private:
  std::optional<Error> error_;
};

}  // namespace muster

#define MUSTER_CONCAT_INNER(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_INNER(a, b)

/// `MUSTER_TRY(auto x, f())`: x is f()'s value, or the enclosing function returns f()'s error.
#define MUSTER_TRY(declaration, expression) \
  MUSTER_TRY_IMPL(MUSTER_CONCAT(musterTry, __LINE__), declaration, expression)
#define MUSTER_TRY_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                            \
  if (!temporary.ok()) return std::move(temporary).error(); \
  declaration = std::move(temporary).value()

/// `MUSTER_CHECK_OK(f())`: the enclosing function returns f()'s error, if there is one.
#define MUSTER_CHECK_OK(expression)                                 \
  do {                                                              \
    auto musterStatus = (expression);                               \
    if (!musterStatus.ok()) return std::move(musterStatus).error(); \
  } while (false)
