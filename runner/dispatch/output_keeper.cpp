// SPDX-License-Identifier: Apache-2.0
// Stores the output of a rank within fixed bounds.
#include "runner/dispatch/output_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runner/core/text.h"
#include "runner/system/trust.h"

namespace muster {

void OutputKeeper::add(std::string_view bytes) {
  total_ += bytes.size();
  tail_.append(bytes);
  if (tail_.size() > 4 * kTail) tail_.erase(0, tail_.size() - kTail);
  const size_t head = std::min<uint64_t>(bytes.size(), written_ < kHead ? kHead - written_ : 0);
  if (head > 0) {
    write(bytes.substr(0, head));
    written_ += head;
  }
  last_.append(bytes.substr(head));
  // Erasing only at twice the size makes the cost per byte constant.
  if (last_.size() > 2 * kLast) trimLast();
}

void OutputKeeper::trimLast() {
  if (last_.size() > kLast) last_.erase(0, last_.size() - kLast);
}

void OutputKeeper::finish() {
  trimLast();
  const uint64_t count = dropped();
  if (count > 0) write(fmt::format("\n[muster: {} bytes of output dropped here]\n", count));
  write(last_);
  file_.reset();
}

std::string OutputKeeper::tail() const {
  std::string_view end = tail_;
  if (end.size() > kTail) end.remove_prefix(end.size() - kTail);
  // The cut may have split a character: skip to the start of the next one.
  if (tail_.size() > kTail)
    while (!end.empty() && (static_cast<unsigned char>(end.front()) & 0xC0) == 0x80) end.remove_prefix(1);
  return validUtf8(end);
}

void OutputKeeper::write(std::string_view bytes) {
  if (path_.empty() || !problem_.empty()) return;
  if (!file_.valid() && !bytes.empty()) {
    auto opened = openOwnFile(path_, O_WRONLY | O_TRUNC);
    if (!opened.ok()) {
      problem_ = "cannot keep the output: " + opened.error().text();
      return;
    }
    file_ = std::move(opened).value();
  }
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      problem_ = fmt::format("cannot keep the output in {}: {}", path_.string(), errnoText(errno));
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace muster
