// SPDX-License-Identifier: Apache-2.0
// Reads the lists as the kernel hands them over, byte by byte.
#include "runner/system/acl.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

namespace muster {
namespace {

constexpr size_t kMostBytes = 65536;  // XATTR_SIZE_MAX
constexpr uint32_t kAllow = 0, kInheritOnly = 0x8;
/// Rights that the mode shows for the group and for everybody: to write, append and delete entries.
constexpr uint32_t kShown = 0x2 | 0x4 | 0x40;
/// Rights over the list and the owner, which give all others.
constexpr uint32_t kTakeover = 0x40000 | 0x80000;

/// The attribute; "" where there is none. Nothing: it cannot be read.
std::optional<std::string> attribute(const std::filesystem::path& path, const char* name) {
  std::string value(kMostBytes, '\0');
  const ssize_t size = lgetxattr(path.c_str(), name, value.data(), value.size());
  if (size < 0) return errno == ENODATA || errno == ENOTSUP ? std::optional<std::string>("") : std::nullopt;
  value.resize(static_cast<size_t>(size));
  return value;
}

/// XDR: numbers of four bytes, the highest first; texts with their length before and filled up to four bytes.
class XdrReader {
 public:
  explicit XdrReader(std::string_view data) : data_(data) {}
  uint32_t number() {
    uint32_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return ntohl(value);
  }
  std::string_view text() {
    const size_t size = number();
    return take((size + 3) / 4 * 4).substr(0, size);
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::string_view take(size_t size) {
    ok_ = ok_ && size <= data_.size();
    if (!ok_) return {};
    const std::string_view taken = data_.substr(0, size);
    data_.remove_prefix(size);
    return taken;
  }

  std::string_view data_;
  bool ok_ = true;
};

}  // namespace

AclWriters posixAclWriters(std::string_view list, const std::vector<uid_t>& believed) {
  posix_acl_xattr_header header{};
  const size_t bytes = list.size() - std::min(list.size(), sizeof header);
  if (list.size() < sizeof header || bytes % sizeof(posix_acl_xattr_entry) != 0) return {true, true};
  std::memcpy(&header, list.data(), sizeof header);
  if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION) return {true, true};
  std::vector<posix_acl_xattr_entry> entries(bytes / sizeof(posix_acl_xattr_entry));
  if (bytes > 0) std::memcpy(entries.data(), list.data() + sizeof header, bytes);
  AclWriters writers;
  bool mask = true;
  for (const posix_acl_xattr_entry& entry : entries) {
    const bool write = (le16toh(entry.e_perm) & ACL_WRITE) != 0;
    const uint16_t tag = le16toh(entry.e_tag);
    if (tag == ACL_MASK) mask = write;
    if (tag == ACL_GROUP_OBJ) writers.owningGroup = write;
    const bool isBelieved =
        tag == ACL_USER && std::find(believed.begin(), believed.end(), le32toh(entry.e_id)) != believed.end();
    writers.others |= write && (tag == ACL_USER || tag == ACL_GROUP) && !isBelieved;
  }
  return {writers.others && mask, writers.owningGroup && mask};
}

bool nfs4AclOpens(std::string_view list) {
  XdrReader reader(list);
  const uint32_t count = reader.number();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    const uint32_t type = reader.number(), flags = reader.number(), rights = reader.number();
    const std::string_view who = reader.text();
    if (type != kAllow || (flags & kInheritOnly) != 0 || who == "OWNER@" || who.starts_with("root@"))
      continue;
    const bool shown = who == "GROUP@" || who == "EVERYONE@";
    if ((rights & (shown ? kTakeover : kShown | kTakeover)) != 0) return true;
  }
  return !reader.ok();
}

AclWriters aclWriters(const std::filesystem::path& path, bool groupBit, const std::vector<uid_t>& believed) {
  const auto nfs4 = attribute(path, "system.nfs4_acl");
  AclWriters writers{!nfs4 || (!nfs4->empty() && nfs4AclOpens(*nfs4)), groupBit};
  if (!groupBit) return writers;  // it stands for the mask: nobody in a list can write
  const auto posix = attribute(path, "system.posix_acl_access");
  if (posix && posix->empty()) return writers;
  const AclWriters listed = posix ? posixAclWriters(*posix, believed) : AclWriters{true, true};
  return {writers.others || listed.others, listed.owningGroup};
}

bool defaultAclOpens(const std::filesystem::path& path, const std::vector<uid_t>& believed) {
  const auto list = attribute(path, "system.posix_acl_default");
  return !list || (!list->empty() && posixAclWriters(*list, believed).others);
}

}  // namespace muster
