// SPDX-License-Identifier: Apache-2.0
// Loaded before all else (LD_PRELOAD), it is a data line that is stuck, in what this process sends or
// receives by Gloo. MUSTER_FAKE_STUCK_LINE says which: "sends 26 1" leaves bit 26 of each eight bytes at 1 in
// all that is sent; "receives 26 0" at 0 in all that arrives; "sends 26 1 5" only in every fifth of what is
// larger than 1 KiB, as a loose contact does. Gloo's own headers stay as they are.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kHeader =
    48;  ///< of Gloo's messages: what is sent or read first of this size, or less, may be one

constexpr size_t kLoose = 1024;

struct Line {
  bool sends = false, receives = false;
  int bit = 0;
  bool high = false;
  unsigned period = 0;
  mutable std::atomic<unsigned> count{0};

  Line() {
    const char* text = std::getenv("MUSTER_FAKE_STUCK_LINE");
    char what[16] = "";
    int at = 0;
    if (text == nullptr || std::sscanf(text, "%15s %d %d %u", what, &bit, &at, &period) < 3) return;
    sends = std::strcmp(what, "sends") == 0;
    receives = std::strcmp(what, "receives") == 0;
    high = at != 0;
  }

  /// By address, as a line of a bus has its bits.
  void damage(void* data, size_t bytes, const void* address) const {
    if (period > 0 && (bytes <= kLoose || ++count % period != 0)) return;
    auto* byte = static_cast<unsigned char*>(data);
    const auto mask = static_cast<unsigned char>(1u << (bit % 8));
    size_t i = (static_cast<size_t>(bit / 8) - reinterpret_cast<uintptr_t>(address)) % 8;
    for (; i < bytes; i += 8) byte[i] = static_cast<unsigned char>(high ? byte[i] | mask : byte[i] & ~mask);
  }
};

const Line& line() {
  static const Line known;
  return known;
}

/// Whether the code at `address` is Gloo's: the same process talks to others, too.
bool isGloo(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && std::strstr(info.dli_fname, "/libgloo.so") != nullptr;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

/// Gloo sends a header, or what is left of it, and its data by one call.
__attribute__((visibility("default"))) ssize_t writev(int fd, const iovec* parts, int count) {
  static const auto send = real<ssize_t (*)(int, const iovec*, int)>("writev");
  if (!line().sends || !isGloo(__builtin_return_address(0))) return send(fd, parts, count);
  std::vector<iovec> changed(parts, parts + count);
  std::vector<std::string> copies(changed.size());
  for (size_t i = 0; i < changed.size(); ++i) {
    if (i == 0 && changed[i].iov_len <= kHeader) continue;
    copies[i].assign(static_cast<const char*>(changed[i].iov_base), changed[i].iov_len);
    line().damage(copies[i].data(), copies[i].size(), changed[i].iov_base);
    changed[i].iov_base = copies[i].data();
  }
  return send(fd, changed.data(), count);
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  static const auto receive = real<ssize_t (*)(int, void*, size_t, int)>("recv");
  const ssize_t got = receive(fd, data, bytes, flags);
  if (got > 0 && bytes > kHeader && line().receives && isGloo(__builtin_return_address(0)))
    line().damage(data, static_cast<size_t>(got), data);
  return got;
}
}
