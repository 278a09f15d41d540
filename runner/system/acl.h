// SPDX-License-Identifier: Apache-2.0
// Access control lists: who else than the mode shows may write to a file or folder. Internal to trust.cpp.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>
#include <vector>

namespace muster {

/// Who may write besides the owner and the users that the caller believes.
struct AclWriters {
  bool others = false;       ///< a user or group that the list names
  bool owningGroup = false;  ///< the file's group
};

/// A POSIX access control list in the kernel's form (linux/posix_acl_xattr.h). One that cannot be read counts
/// as open to others.
AclWriters posixAclWriters(std::string_view list, const std::vector<uid_t>& believed);

/// Whether an NFSv4 list, in the form of the attribute system.nfs4_acl (RFC 8881, section 6.2.1), lets
/// somebody write whom the mode does not show. Entries that deny are not taken into account.
bool nfs4AclOpens(std::string_view list);

/// The writers of `path`, which is no link; `groupBit`: whether its mode has S_IWGRP, which stands for the
/// group where there is no list, and for everybody in the list where there is one.
AclWriters aclWriters(const std::filesystem::path& path, bool groupBit, const std::vector<uid_t>& believed);

/// Whether what is made in the folder `path` gets an entry that lets others write.
bool defaultAclOpens(const std::filesystem::path& path, const std::vector<uid_t>& believed);

}  // namespace muster
