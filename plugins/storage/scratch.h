// SPDX-License-Identifier: Apache-2.0
// A directory of this plugin's own, and what is known of the file system below it. Everything is reached
// through descriptors, so that nobody can lead it elsewhere by a link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plugins/storage/tests.h"
#include "runner/system/files.h"

namespace muster::storage {

/// The mount of an open directory, by /proc/self/mountinfo.
struct Mount {
  std::string source;     ///< /dev/nvme0n1p1, server:/export
  std::string type;       ///< ext4, nfs4, lustre
  std::string options;    ///< of the mount and of the file system
  std::string root = {};  ///< inode number of its top directory, which no other node can replace; or empty

  [[nodiscard]] std::string text() const { return type + " of " + source; }
};
Result<Mount> mountOf(int directory);
/// The mount of a directory or, where it cannot be opened, of the nearest one above that can.
Result<Mount> mountAbove(const std::string& directory);
/// Reports it as text metrics.
Status reportMount(const Site& site, const Mount& mount);

/// Opens a directory that an operator names: an absolute path to a directory, which is no symbolic link.
Result<Fd> openDirectory(const std::string& path);

/// The same for one to make something in: for root, refused where another user could replace what is made.
Result<Fd> openIn(const std::string& directory);

/// Inode number of an open directory: on a file system of the network the same on all nodes. Empty: unknown.
std::string inodeOf(int directory);

/// An error where an open directory is not this user's alone.
Status requireOwn(int directory, const std::string& shown);

/// A new subdirectory that only this user may enter. The destructor removes it with all that is in it.
class Scratch {
 public:
  /// In `directory`, or, where that is empty, in the folder of the stage's artifacts.
  static Result<Scratch> make(const Site& site, const std::string& directory);
  Scratch(Scratch&&) = default;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();

  [[nodiscard]] int fd() const { return own_.get(); }
  /// A path to it for as long as this object lives.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] const std::string& shownPath() const { return shown_; }

  /// An error where `files` files with `bytes` in all would leave less than `keepFree` of the file system.
  [[nodiscard]] Status requireSpace(uint64_t bytes, uint64_t files, uint64_t keepFree) const;

 private:
  Scratch(Fd parent, Fd own, std::string name, std::string shown)
      : parent_(std::move(parent)), own_(std::move(own)), name_(std::move(name)), shown_(std::move(shown)) {}

  Fd parent_, own_;
  std::string name_, shown_;
};

/// Reads until the buffer is full or the file ends; the bytes read, or -1 with errno.
ssize_t readFully(int fd, char* buffer, size_t size);

/// Writes all of it; 0, or the errno of the failure.
int writeFully(int fd, std::string_view content);

/// A name that no other run has: "muster-storage-0f3a...".
Result<std::string> newName();

}  // namespace muster::storage
