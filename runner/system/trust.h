// SPDX-License-Identifier: Apache-2.0
// Files that other users could have put there or could change: what is loaded or executed must belong to root
// or to the user who runs Muster, and what is written must not lead elsewhere. runner/README.md has the
// threat model.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster {

/// Which folders above a path are checked with it.
enum class Above {
  kOthersThanProgram,  ///< not those that also hold this program: who can change them can change the program
  kAll,                ///< and those above the links that lead there: what they lead to is acted on
};

/// The real path of `path`, without symbolic links; refused if anybody but root and this user could change or
/// replace what is there. It, its folder and the folders above must belong to root or this user; only the
/// owner may write to it and to its folder. Further up, a group that is the owner's alone may write too (not
/// root's; access control lists count), and everybody where the sticky bit protects the entries (/tmp).
/// `kind` is for the message: "plugin". Use the result, never `path` again: whoever could replace a part of
/// the result is refused here, but a link in `path` may lie where others can turn it.
Result<std::filesystem::path> trustedPath(const std::filesystem::path& path, const std::string& kind,
                                          Above above = Above::kOthersThanProgram);

/// The same for what need not be there yet: what is checked is the nearest folder above it that is.
Result<std::filesystem::path> trustedTarget(const std::filesystem::path& path, const std::string& kind,
                                            Above above = Above::kOthersThanProgram);

/// trustedPath() for a folder and everything below it.
Status trustFolder(const std::filesystem::path& folder, const std::string& kind,
                   Above above = Above::kOthersThanProgram);

/// The program `name` in `folder`, or where that is empty in the first directory of PATH that has it; refused
/// as by trustedPath(). kNotFound tells to install `package`, or to set `variable` to its directory.
Result<std::string> trustedProgram(const std::string& name, const std::string& folder,
                                   const std::string& package, const std::string& variable);

/// Whether somebody may have put this entry (links are not followed) into a folder that others may write to:
/// the folder has the sticky bit, and neither root, this user nor the folder's owner owns the entry. What is
/// looked for in all folders above a path must leave such entries out: anybody can make one in /tmp.
bool isPlanted(const std::filesystem::path& entry);

/// Opens a file for writing; creates it (`mode`, less the umask) if it is missing. Refuses what others could
/// have put in its place: a symbolic link, anything but a regular file, a file of another user, a file with a
/// second name. `flags`: O_WRONLY or O_RDWR, with O_APPEND, or with O_TRUNC (done after the checks).
Result<Fd> openOwnFile(const std::filesystem::path& path, int flags, mode_t mode = 0644);

/// Opens a file to flock(); creates it if it is missing. Only its owner can open it: whoever can read a file
/// can hold its lock.
Result<Fd> openLockFile(const std::filesystem::path& path);

/// Reads a file of a folder that a job of its owner writes to. Refuses what others could have put there: a
/// symbolic link, anything but a regular file, a file of another user than the folder's, one that everybody
/// can write to, and one of root's that a group can.
Result<std::string> readOwnFile(const std::filesystem::path& path, uint64_t limit);

/// Reads a file that a plan names. Refuses one that not everybody may read: a plan is no way to read a secret
/// with the rights of whoever runs it.
Result<std::string> readPublicFile(const std::filesystem::path& path);

/// Reads a key or another secret. kUsage for a file that others than its owner can read or write, that
/// belongs to another user than root and this one, or that is larger than `limit`.
Result<std::string> readPrivateFile(const std::filesystem::path& path, uint64_t limit);

/// The real path of a folder to write into, or whose scripts are executed. Refused if it belongs to another
/// user than root and this one, or if everybody can write to it. For root, also if a group or a user of an
/// access control list can, or if others could replace a folder or link on the way there; the user who called
/// sudo counts as root.
Result<std::filesystem::path> ownFolder(const std::filesystem::path& folder,
                                        const std::string& kind = "run folder");

/// The real path of a folder that files are written to as a whole, by renaming. For root it is refused as by
/// ownFolder(), but for folders with the sticky bit; for others it is `folder` itself, and nothing is
/// checked.
Result<std::filesystem::path> outputFolder(const std::filesystem::path& folder);

/// The same, and makes what is missing of it. `option` is for the message: "--out", with which another is
/// chosen.
Result<std::filesystem::path> makeOutputFolder(const std::filesystem::path& folder,
                                               const std::string& option);

/// The same for a folder that nobody named: in a home that root was handed by sudo nothing is made, as only
/// root could remove it there.
Result<std::filesystem::path> makeOwnFolder(const std::filesystem::path& folder);

/// Makes a folder (mode 0755, less the umask) inside one that ownFolder() accepts, or takes the one that is
/// there. Refuses what others could have put there while they could write to the one above: a symbolic link,
/// anything but a folder, and what ownFolder() refuses. `kind` is for the message: "artifacts folder".
Status makeOwnSubfolder(const std::filesystem::path& folder, const std::string& kind);

}  // namespace muster
