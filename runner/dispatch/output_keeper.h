// SPDX-License-Identifier: Apache-2.0
// Keeps what a rank prints: the first and last 8 MiB in a file, the last 4 KiB at hand, the rest only
// counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "runner/system/files.h"

namespace muster {

/// Bounded in memory and on disk, however much a rank prints.
class OutputKeeper {
 public:
  static constexpr size_t kHead = 8u << 20;
  static constexpr size_t kLast = 8u << 20;
  static constexpr size_t kTail = 4096;

  /// The file is made when the first output arrives; with an empty path only the tail is kept.
  explicit OutputKeeper(std::filesystem::path file) : path_(std::move(file)) {}

  void add(std::string_view bytes);
  /// Writes what is still held back, with a line that says how much was dropped. Call once.
  void finish();

  /// The last 4 KiB as valid UTF-8.
  [[nodiscard]] std::string tail() const;
  [[nodiscard]] uint64_t dropped() const { return total_ - written_ - last_.size(); }
  /// Why the file could not be written; empty when it could.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void write(std::string_view bytes);
  void trimLast();
  std::filesystem::path path_;
  Fd file_;
  std::string last_;
  std::string tail_;
  std::string problem_;
  uint64_t total_ = 0;
  uint64_t written_ = 0;
};

}  // namespace muster
