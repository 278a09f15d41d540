// SPDX-License-Identifier: Apache-2.0
// What each node saw of each other one's files in a shared directory, and whose fault a difference is.
#pragma once

#include <string>
#include <vector>

namespace muster::storage {

/// What a node saw of another one's file, the first fault of it. kSame: what was written.
enum class Sight : char {
  kSame = '.',
  kMissing = 'm',
  kStale = 's',       ///< an older version than was last written
  kWrong = 'w',       ///< other contents or another size
  kUnreadable = 'u',  ///< an error
  kTorn = 't',        ///< while the file was replaced by renaming: neither version
  kLocked = 'l',      ///< it got a lock that the other node held
};

/// One node, and what it saw of each (a Sight per rank, of itself kSame).
struct NodeView {
  std::string name;
  std::string mount;    ///< "nfs4 of server:/export"
  std::string problem;  ///< why it could not take part; empty: it did
  std::string sights;
  bool isCommon = false;     ///< its problem can be the directory's own or another node's doing there
  bool changed = false;      ///< a file of its own was not as it left it
  std::string root = {};     ///< see Mount
  std::string parent = {};   ///< inode number of `directory`, and
  std::string entered = {};  ///< of the one below it where the nodes meet; empty: it could not enter
  bool moved = false;        ///< their names did not always lead to these
};

constexpr int kAllNodes = -1;

/// A node to blame, and why.
struct NodeFault {
  int node = 0;  ///< or kAllNodes
  std::string text;
  bool told = true;  ///< false: it or one of the others that the text names, which of them cannot be told
};

/// The nodes that explain every difference, as few as possible: those with problems of their own, then again
/// and again the node that most differences are laid to. One is laid to who sees it where more of the other
/// nodes see that file as it is, to whose file it is where fewer do, else to both; also to both where a node
/// sees the file of one other alone otherwise, which that one can have brought about. So neither one's word
/// nor its file is held against another node. Where several nodes have most (of two nodes always), it cannot
/// be told which, and where somebody changed a file, whose doing it is. A common problem is a node's own
/// where its directory is mounted otherwise than those of most others. Where nodes met in different
/// directories of one mount, or a directory lost its name, somebody replaced it: that concerns all nodes.
std::vector<NodeFault> blame(const std::vector<NodeView>& nodes);

}  // namespace muster::storage
