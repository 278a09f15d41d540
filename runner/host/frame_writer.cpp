// SPDX-License-Identifier: Apache-2.0
// See frame_writer.h.
#include "runner/host/frame_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "runner/core/files.h"

namespace muster {

FrameWriter::FrameWriter(int fd) : fd_(fd), owner_(getpid()) {}

Status FrameWriter::write(const Json& frame) {
  const std::lock_guard lock(mutex_);
  return writeLocked(frame);
}

Status FrameWriter::writeInCase(Json frame) {
  const std::lock_guard lock(mutex_);
  if (case_ < 0) return Error{ErrorCode::kProtocol, "no case is running", ""};
  frame["case"] = case_;
  return writeLocked(frame);
}

Status FrameWriter::writeAnywhere(Json frame) {
  const std::lock_guard lock(mutex_);
  frame["case"] = case_;
  return writeLocked(frame);
}

Status FrameWriter::beginCase(int index) {
  const std::lock_guard lock(mutex_);
  case_ = index;
  return writeLocked({{"type", "case"}, {"case", index}, {"event", "begin"}});
}

Status FrameWriter::endCase(const Json& end) {
  const std::lock_guard lock(mutex_);
  Json frame{{"type", "case"}, {"case", case_}, {"event", "end"}};
  frame.update(end);
  case_ = -1;
  return writeLocked(frame);
}

Status FrameWriter::writeLocked(const Json& frame) {
  if (getpid() != owner_) return Error{ErrorCode::kProtocol, "called from a forked child of the rank", ""};
  const std::string line = dumpJson(frame) + "\n";
  if (line.size() > kMaxFrameBytes)
    return Error{
        ErrorCode::kUsage,
        fmt::format("its frame has {} bytes, at most {} are taken; send fewer samples or shorter texts",
                    line.size(), kMaxFrameBytes),
        ""};
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return Error{
          ErrorCode::kIo,
          fmt::format("cannot write a frame: {}{}", errnoText(errno),
                      errno == EBADF ? "; a plugin must not close descriptors that it did not open" : ""),
          ""};
    written += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace muster
