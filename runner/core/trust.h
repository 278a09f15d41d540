// SPDX-License-Identifier: Apache-2.0
// Files that other users could have put there or could change: what is loaded or executed must belong to root
// or to the user who runs Muster, and what is written must not lead elsewhere. runner/README.md has the
// threat model.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "runner/core/files.h"
#include "runner/core/result.h"

namespace muster {

/// Which folders above a path are checked with it.
enum class Above {
  kOthersThanProgram,  ///< not those that also hold this program: who can change them can change the program
  kAll,
};

/// Refuses a path that anybody but root and this user could change or replace. The path, its folder and the
/// folders above it must belong to root or this user; only the owner may write to the path and to its folder.
/// Further up, a group of the owner's number may write too, and everybody where the sticky bit protects the
/// entries (/tmp). `path` may be a symbolic link: what it leads to is checked. `kind` is for the message:
/// "plugin". Without a race: whoever could replace a part of the path after the check is refused by it.
Status checkTrusted(const std::filesystem::path& path, const std::string& kind,
                    Above above = Above::kOthersThanProgram);

/// Opens a file for writing; creates it (`mode`, less the umask) if it is missing. Refuses what others could
/// have put in its place: a symbolic link, anything but a regular file, a file of another user, a file with a
/// second name. `flags`: O_WRONLY or O_RDWR, with O_APPEND, or with O_TRUNC (done after the checks).
Result<Fd> openOwnFile(const std::filesystem::path& path, int flags, mode_t mode = 0644);

/// Reads a file of a folder that a job of its owner writes to. Refuses what others could have put there: a
/// symbolic link, anything but a regular file, a file of another user than the folder's.
Result<std::string> readOwnFile(const std::filesystem::path& path, uint64_t limit);

/// Refuses a folder to write into that belongs to another user than root and this one, or that everybody can
/// write to.
Status checkOwnFolder(const std::filesystem::path& folder);

}  // namespace muster
