// SPDX-License-Identifier: Apache-2.0
// Whose fault a difference between nodes is.
#include "plugins/storage/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/storage/storage_run.h"

namespace muster::storage {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<NodeView> nodesOf(const std::vector<std::string>& sights) {
  std::vector<NodeView> nodes;
  for (const std::string& row : sights)
    nodes.push_back({"n" + std::to_string(nodes.size()), "nfs4 of server:/export", "", row});
  return nodes;
}

std::vector<int> blamed(const std::vector<NodeFault>& faults) {
  std::vector<int> nodes;
  for (const NodeFault& fault : faults) nodes.push_back(fault.node);
  return nodes;
}

TEST(StorageViews, BlameNobodyWhereAllSeeTheSame) {
  EXPECT_THAT(blame(nodesOf({"...", "...", "..."})), ElementsAre());
}

TEST(StorageViews, BlameTheNodeThatSeesOtherFiles) {
  auto nodes = nodesOf({".m..", "m.mm", ".m..", ".m.."});
  nodes[1].mount = "ext4 of /dev/sda1";
  const auto faults = blame(nodes);
  ASSERT_THAT(blamed(faults), ElementsAre(1));
  EXPECT_EQ(
      faults[0].text,
      "does not see the file of n0, n2, n3; its file is not seen by n0, n2, n3; its directory is ext4 of "
      "/dev/sda1, "
      "that of n0 is nfs4 of server:/export");
}

TEST(StorageViews, BlameTheReaderOrTheWriterByTheOthers) {
  EXPECT_THAT(blamed(blame(nodesOf({"...", "s.s", "..."}))), ElementsAre(1)) << "an old cache";
  EXPECT_THAT(blamed(blame(nodesOf({"..w", "..w", "..."}))), ElementsAre(2)) << "wrong contents written";
  EXPECT_THAT(blamed(blame(nodesOf({"....", "l.ll", "....", "...."}))), ElementsAre(1)) << "locks of its own";
}

/// A node that says so of one other's file is alone with it: its word may be wrong, or the other one changed
/// its file just when this one looked. Who says so of two is believed to see otherwise than all others.
TEST(StorageViews, BlameNoNodeOnOnesWordAlone) {
  for (const char sight : {'m', 's', 'w', 'u', 'l'})
    for (int nodes = 3; nodes < 9; ++nodes)
      for (int of = 1; of < nodes; ++of) {
        std::vector<std::string> rows(static_cast<size_t>(nodes),
                                      std::string(static_cast<size_t>(nodes), '.'));
        rows[0][static_cast<size_t>(of)] = sight;
        auto faults = blame(nodesOf(rows));
        ASSERT_THAT(blamed(faults), ElementsAre(0, of)) << sight << " " << nodes << " " << of;
        EXPECT_FALSE(faults[0].told || faults[1].told);
        rows[0][static_cast<size_t>(of == 1 ? 2 : 1)] = sight;
        faults = blame(nodesOf(rows));
        ASSERT_THAT(blamed(faults), ElementsAre(0)) << sight << " " << nodes << " " << of;
        EXPECT_TRUE(faults[0].told);
      }
}

/// Nobody else reads a file while it is replaced, and another node can have replaced it, too. What is known
/// of other files counts as if that had not been seen.
TEST(StorageViews, BlameNoNodeForWhatWasSeenDuringReplacements) {
  for (const std::vector<std::string>& rows : {std::vector<std::string>{".t..", "....", "....", "...."},
                                               {".t..", "..t.", "....", "...."},
                                               {".t..", "..t.", "...t", "t..."},
                                               {".t", ".."},
                                               {".t", "t."}}) {
    const auto faults = blame(nodesOf(rows));
    EXPECT_FALSE(faults.empty());
    for (const NodeFault& fault : faults) {
      EXPECT_FALSE(fault.told);
      EXPECT_THAT(fault.text, HasSubstr("cannot be told"));
    }
  }
  // Node 0's file is seen otherwise by 2 alone, as node 0 can bring about; the rest is no evidence.
  for (const NodeFault& fault : blame(nodesOf({"..t.", "..t.", "m...", "..t."}))) EXPECT_FALSE(fault.told);
  const auto faults = blame(nodesOf({".mt.", "m.mm", ".m.t", ".m.."}));
  ASSERT_THAT(blamed(faults), ElementsAre(1, 2));
  EXPECT_TRUE(faults[0].told);
  EXPECT_FALSE(faults[1].told);
  EXPECT_THAT(faults[1].text, AllOf(HasSubstr("of n3"), HasSubstr("seen by n0")));
}

TEST(StorageViews, BlameTheNodeWhoseFileNobodyCanRead) {
  const auto faults = blame(nodesOf({".u..", "....", ".u..", ".u.."}));
  ASSERT_THAT(blamed(faults), ElementsAre(1));
  EXPECT_TRUE(faults[0].told);
  EXPECT_EQ(faults[0].text, "its file cannot be read by n0, n2, n3");
}

TEST(StorageViews, BlameSeveralNodesOneAfterTheOther) {
  EXPECT_THAT(blamed(blame(nodesOf({".m..m", "m.mmm", ".m..m", ".m..m", "mmmm."}))), ElementsAre(1, 4));
}

TEST(StorageViews, SayThatTwoNodesCannotBeToldApart) {
  const auto faults = blame(nodesOf({".m", "m."}));
  EXPECT_THAT(blamed(faults), ElementsAre(0, 1));
  for (const NodeFault& fault : faults) {
    EXPECT_THAT(fault.text, HasSubstr("which of n0, n1 is at fault cannot be told"));
    EXPECT_FALSE(fault.told);
  }
}

TEST(StorageViews, BlameANodeWithAProblemForWhatOthersMiss) {
  auto nodes = nodesOf({".m.", "...", ".m."});
  nodes[1].problem = "/shared: cannot open the directory";
  const auto faults = blame(nodes);
  ASSERT_THAT(blamed(faults), ElementsAre(1));
  EXPECT_EQ(faults[0].text, "/shared: cannot open the directory");
}

/// What another node can do to the shared directory rejects nobody.
TEST(StorageViews, BlameNoNodeForWhatAnotherCanHaveDone) {
  auto nodes = nodesOf({"....", "m.m.", "....", "...."});
  EXPECT_TRUE(blame(nodes).at(0).told);
  nodes[0].changed = true;
  const auto faults = blame(nodes);
  ASSERT_THAT(blamed(faults), ElementsAre(1));
  EXPECT_FALSE(faults[0].told);
  EXPECT_THAT(faults[0].text, HasSubstr("changed the files of n0"));

  for (const size_t count : {2u, 3u, 4u, 5u}) {
    nodes = nodesOf(std::vector<std::string>(count, std::string(count, '.')));
    nodes[1].problem = "cannot make a file: Permission denied (EACCES)";
    EXPECT_TRUE(blame(nodes).at(0).told);
    nodes[1].isCommon = true;
    EXPECT_FALSE(blame(nodes).at(0).told) << count;
    nodes[0].mount = "ext4 of /dev/sda1";  // one node's word
    EXPECT_FALSE(blame(nodes).at(0).told) << count;
    nodes[0].mount = "nfs4 of server:/export";
    nodes[1].mount = "ext4 of /dev/sda1";
    EXPECT_EQ(blame(nodes).at(0).told, count > 2) << count;
  }
}

/// Node 1 alone sees other files than all others.
TEST(StorageViews, BlameNoNodeWhereTheDirectoryWasReplaced) {
  struct Alone {
    const char* mount;
    const char* root;
    const char* parent;
    const char* entered;
    bool moved;
    bool told;
  };
  const char* const same = "nfs4 of server:/export";
  for (size_t count = 3; count < 6; ++count)
    for (const Alone& alone : {Alone{same, "2", "40", "50", false, true},  // the same directory
                               {same, "2", "40", "51", false, false},
                               {same, "2", "40", "50", true, false},
                               {same, "2", "41", "51", false, false},  // `directory` was replaced
                               {same, "", "41", "51", false, false},
                               {same, "3", "41", "51", false, true},  // a part of the export
                               {"ext4 of /dev/sda1", "2", "41", "51", false, true},
                               {"ext4 of /dev/sda1", "2", "40", "51", false, false},  // on the server itself
                               {"ext4 of /dev/sda1", "2", "41", "51", true, false}}) {
      std::vector<std::string> rows(count, "." + std::string("m") + std::string(count - 2, '.'));
      rows[1] = std::string(count, 'm');
      rows[1][1] = '.';
      auto nodes = nodesOf(rows);
      for (NodeView& node : nodes) {
        node.root = "2";
        node.parent = "40";
        node.entered = "50";
      }
      nodes[1].mount = alone.mount;
      nodes[1].root = alone.root;
      nodes[1].parent = alone.parent;
      nodes[1].entered = alone.entered;
      nodes[1].moved = alone.moved;
      const auto faults = blame(nodes);
      if (alone.told) {
        ASSERT_THAT(blamed(faults), ElementsAre(1)) << alone.mount << alone.parent << alone.root;
        EXPECT_TRUE(faults[0].told);
        continue;
      }
      ASSERT_THAT(blamed(faults), ElementsAre(kAllNodes, 1)) << alone.mount << alone.parent << alone.root;
      EXPECT_FALSE(faults[0].told || faults[1].told);
      EXPECT_THAT(faults[0].text, AllOf(HasSubstr("n1"), HasSubstr("cannot be told"), HasSubstr("run this")));
    }
  // A file system of its own in the place of the shared one: the tops of both have the same number.
  auto own = nodesOf({".m.", "m.m", ".m."});
  for (NodeView& node : own) node.root = node.parent = "2";
  for (NodeView& node : own) node.entered = "50";
  own[1].mount = "ext4 of /dev/sdb1";
  own[1].entered = "51";
  ASSERT_THAT(blamed(blame(own)), ElementsAre(1));
  EXPECT_TRUE(blame(own)[0].told);
  // Where all see the same it is one directory, whatever number a node's file system gives it.
  auto nodes = nodesOf({"...", "...", "..."});
  nodes[0].entered = "50";
  nodes[1].entered = "51";
  EXPECT_THAT(blame(nodes), ElementsAre());
}

class StorageShared : public testing::StorageRun {};

TEST_F(StorageShared, IsSimulated) {
  const std::string fault = "[[storage.fault]]\nkind = \"apart\"\nnode = 1\n";
  for (int rank = 0; rank < 3; ++rank) {
    host.measurements.clear();
    EXPECT_EQ(onSim("shared", fault, Json::object(), rank, 3).ran, MUSTER_OK) << host.error;
    plugin.expectDeclared(host, "shared");
    EXPECT_EQ(host.value("faulty_node"), rank == 1 ? 1 : 0);
    EXPECT_THAT(host.told("node_fault").at(0).text,
                HasSubstr("node 1: does not see the file of node 0, node 2"));
  }
  host.measurements.clear();
  EXPECT_EQ(onSim("shared", "", Json::object(), 0, 3).ran, MUSTER_OK);
  EXPECT_EQ(host.value("faulty_node"), 0);
  EXPECT_TRUE(host.told("node_fault").empty());
}

TEST_F(StorageShared, IsSkippedWithoutADirectoryOrASecondNode) {
  context["scope"] = "cluster";
  EXPECT_EQ(onDisk("shared", Json::object()).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host.error, HasSubstr("needs two nodes"));
  context["world_size"] = 2;
  EXPECT_EQ(onDisk("shared", {{"directory", ""}}).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host.error, HasSubstr("no shared directory is named"));
}

}  // namespace
}  // namespace muster::storage
