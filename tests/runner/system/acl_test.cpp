// SPDX-License-Identifier: Apache-2.0
// Access control lists in the form that the kernel gives them.
#include "runner/system/acl.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

std::string littleEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

struct Entry {
  uint32_t tag, rights, id;
};
constexpr uint32_t kOwner = 1, kUser = 2, kOwningGroup = 4, kGroup = 8, kMask = 16;
constexpr uint32_t kNobody = 0xffffffff;

AclWriters posix(const std::vector<Entry>& entries) {
  std::string list = littleEndian(2, 4);
  for (const Entry& entry : entries)
    list += littleEndian(entry.tag, 2) + littleEndian(entry.rights, 2) + littleEndian(entry.id, 4);
  return posixAclWriters(list, {0, 1000});
}

TEST(PosixAcl, NamesWhoMayWriteUnderTheMask) {
  const Entry owner{kOwner, 7, kNobody}, group{kOwningGroup, 5, kNobody}, mask{kMask, 7, kNobody};
  EXPECT_FALSE(posix({owner, {kUser, 7, 0}, {kUser, 7, 1000}, group, mask}).others) << "believed users";
  EXPECT_TRUE(posix({owner, {kUser, 7, 1001}, group, mask}).others);
  EXPECT_TRUE(posix({owner, {kUser, 2, 1001}, group, mask}).others);
  EXPECT_FALSE(posix({owner, {kUser, 5, 1001}, group, mask}).others);
  EXPECT_FALSE(posix({owner, {kUser, 7, 1001}, group, {kMask, 5, kNobody}}).others);
  EXPECT_TRUE(posix({owner, group, {kGroup, 7, 0}, mask}).others) << "a group may have members";
  EXPECT_FALSE(posix({owner, {kUser, 7, 0}, group, mask}).owningGroup);
  EXPECT_TRUE(posix({owner, {kOwningGroup, 7, kNobody}, mask}).owningGroup);
  EXPECT_FALSE(posix({owner, {kOwningGroup, 7, kNobody}, {kMask, 5, kNobody}}).owningGroup);
}

TEST(PosixAcl, CountsAsOpenWhereItCannotBeRead) {
  for (const std::string& list :
       {std::string(), std::string("\2\0\0", 3), std::string("\3\0\0\0", 4), std::string("\2\0\0\0abc", 7)})
    EXPECT_TRUE(posixAclWriters(list, {}).others) << list.size();
}

std::string bigEndian(uint32_t value) {
  const std::string text = littleEndian(value, 4);
  return {text.rbegin(), text.rend()};
}

std::string nfs4(uint32_t type, uint32_t flags, uint32_t rights, const std::string& who) {
  const std::string filled = who + std::string((4 - who.size() % 4) % 4, '\0');
  return bigEndian(1) + bigEndian(type) + bigEndian(flags) + bigEndian(rights) +
         bigEndian(static_cast<uint32_t>(who.size())) + filled;
}

TEST(Nfs4Acl, OpensWhatTheModeDoesNotShow) {
  constexpr uint32_t kWrite = 0x2, kAddFolder = 0x4, kDeleteChild = 0x40, kWriteAcl = 0x40000, kRead = 0x1;
  for (const uint32_t right : {kWrite, kAddFolder, kDeleteChild, kWriteAcl}) {
    EXPECT_TRUE(nfs4AclOpens(nfs4(0, 0, right, "mallory@example.org"))) << right;
    EXPECT_TRUE(nfs4AclOpens(nfs4(0, 0x40, right, "users@example.org"))) << right;
    EXPECT_FALSE(nfs4AclOpens(nfs4(0, 0, right, "OWNER@"))) << right;
    EXPECT_FALSE(nfs4AclOpens(nfs4(0, 0, right, "root@example.org"))) << right;
    EXPECT_EQ(nfs4AclOpens(nfs4(0, 0, right, "EVERYONE@")), right == kWriteAcl)
        << "the mode shows the others";
    EXPECT_FALSE(nfs4AclOpens(nfs4(1, 0, right, "mallory@example.org"))) << "denied";
    EXPECT_FALSE(nfs4AclOpens(nfs4(0, 0x8, right, "mallory@example.org"))) << "only of what is made in it";
  }
  EXPECT_FALSE(nfs4AclOpens(nfs4(0, 0, kRead, "mallory@example.org")));
  EXPECT_FALSE(nfs4AclOpens(bigEndian(0)));
}

TEST(Nfs4Acl, OpensWhereItCannotBeRead) {
  const std::string list = nfs4(1, 0, 1, "mallory@example.org");
  for (size_t size = 0; size < list.size(); ++size) EXPECT_TRUE(nfs4AclOpens(list.substr(0, size))) << size;
  EXPECT_TRUE(
      nfs4AclOpens(bigEndian(1) + bigEndian(1) + bigEndian(0) + bigEndian(1) + bigEndian(0xffffffff)));
}

}  // namespace
}  // namespace muster
