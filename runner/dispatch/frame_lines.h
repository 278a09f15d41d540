// SPDX-License-Identifier: Apache-2.0
// Cuts what arrives on a pipe into lines of bounded length.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace muster {

/// Collects bytes until a line is whole. Never holds more than the bound.
class FrameLines {
 public:
  static constexpr size_t kMaxLine = 1u << 20;  ///< with its line end; see runner/host/README.md

  /// Calls `onLine` for each whole line, without its end; false (and nothing more is taken) once a line is
  /// longer than kMaxLine.
  bool feed(std::string_view bytes, const std::function<void(std::string_view)>& onLine);
  /// Whether the stream stopped inside a line.
  [[nodiscard]] bool torn() const { return !partial_.empty(); }

 private:
  std::string partial_;
  bool tooLong_ = false;
};

}  // namespace muster
