// SPDX-License-Identifier: Apache-2.0
// Splits the bytes of a pipe into bounded lines.
#include "runner/dispatch/frame_lines.h"

#include <utility>

namespace muster {

bool FrameLines::feed(std::string_view bytes, const std::function<void(std::string_view)>& onLine) {
  while (!bytes.empty() && !tooLong_) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() + 1 > kMaxLine) {
      tooLong_ = true;
      partial_.clear();
      break;
    }
    partial_.append(piece);
    if (end == std::string_view::npos) break;
    const std::string line = std::exchange(partial_, {});
    onLine(line);
    bytes.remove_prefix(end + 1);
  }
  return !tooLong_;
}

}  // namespace muster
