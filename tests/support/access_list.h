// SPDX-License-Identifier: Apache-2.0
// Access control lists of files, without setfacl.
#pragma once

#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>

namespace muster::testing {

inline constexpr const char* kNoLists = "the file system of TMPDIR has no access control lists";
inline constexpr const char* kOwnList = "system.posix_acl_access";
inline constexpr const char* kDefaultList =
    "system.posix_acl_default";  ///< for what will be made in a folder

/// Gives `user` all rights by an access control list, as `setfacl -m u:user:rwx` does, which the mode shows
/// as those of the group. False where the file system has no such lists.
inline bool allow(const std::filesystem::path& path, uint32_t user, const char* list = kOwnList,
                  uint16_t group = 5) {
  struct Entry {
    uint16_t tag, rights;
    uint32_t id;
  };
  struct {
    uint32_t version = 2;
    std::array<Entry, 5> entries;
  } acl;
  constexpr uint32_t kNobody = 0xffffffff;
  acl.entries = {{{1, 7, kNobody}, {2, 7, user}, {4, group, kNobody}, {16, 7, kNobody}, {32, 5, kNobody}}};
  const bool done = setxattr(path.c_str(), list, &acl, sizeof acl, 0) == 0;
  EXPECT_TRUE(done || errno == ENOTSUP) << std::strerror(errno);
  return done;
}

}  // namespace muster::testing
