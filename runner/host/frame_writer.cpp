// SPDX-License-Identifier: Apache-2.0
// Writes frames to the supervisor, one JSON object per line.
#include "runner/host/frame_writer.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runner/system/files.h"

namespace muster {

FrameWriter::FrameWriter(int fd) : fd_(fd), owner_(getpid()) {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return;  // the first frame says so
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

Status FrameWriter::checkDescriptor() const {
  struct stat info {};
  const bool open = fstat(fd_, &info) == 0;
  if (open && info.st_dev == device_ && info.st_ino == inode_) return {};
  return Error{ErrorCode::kIo,
               fmt::format("cannot write a frame: its descriptor was closed{}; a plugin must not close "
                           "descriptors that it did not open",
                           open ? " and is another file now" : ""),
               ""};
}

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
  MUSTER_CHECK_OK(checkDescriptor());
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error{ErrorCode::kIo, "cannot write a frame: " + errnoText(errno), ""};
    written += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace muster
