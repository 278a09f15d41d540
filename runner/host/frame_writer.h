// SPDX-License-Identifier: Apache-2.0
// Writes frames, one JSON object per line, from any thread of the rank and from no other process.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>

#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster {

inline constexpr size_t kMaxFrameBytes = 1u << 20;  ///< with its line end

/// The rank's end of the frame stream. It knows which case is open, so that a plugin's thread that reports
/// late cannot put a frame between two cases.
class FrameWriter {
 public:
  /// Writes to `fd`, which it does not own. A child that the plugin forks shares it, and is refused.
  explicit FrameWriter(int fd);

  /// Writes `frame` as it is. An error when it is too long, from a forked child, or nobody reads any more.
  Status write(const Json& frame);
  /// Adds the open case to `frame` and writes it; an error when no case is open.
  Status writeInCase(Json frame);
  /// The same with `case` -1 when no case is open.
  Status writeAnywhere(Json frame);

  Status beginCase(int index);
  /// Closes the open case with `end` (state, message, remedy).
  Status endCase(const Json& end);

 private:
  Status writeLocked(const Json& frame);
  /// An error where the descriptor is closed, or has become another file: frames must not go into a plugin's.
  [[nodiscard]] Status checkDescriptor() const;
  std::mutex mutex_;
  int fd_;
  pid_t owner_;
  dev_t device_ = 0;  // with inode_: which file the descriptor was at first
  ino_t inode_ = 0;
  int case_ = -1;
};

}  // namespace muster
