// SPDX-License-Identifier: Apache-2.0
// Groups of ranks and their buckets, over a communicator of threads whose sums can be bent.
#include "plugins/train/group.h"

#include <gmock/gmock.h>

#include <barrier>
#include <limits>
#include <mutex>
#include <thread>

#include "kernels/checks/largest.h"
#include "tests/kernels/virtual_device.h"

namespace muster::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kUntold = "do not arrive as they were sent, from a rank that cannot be told";

/// What the ranks of a group share.
struct Table {
  explicit Table(int ranks) : meet(ranks) {}
  std::barrier<> meet;
  std::mutex mutex;
  std::vector<double> largest;
};

/// Only maxima work: they are all that Group needs.
class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(Table& table, int rank, int size) : table_(table), rank_(rank), size_(size) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::string implementation() const override { return "threads"; }
  Result<std::unique_ptr<Collective>> collective(const CollectiveSpec&) override { return no(); }
  Status allReduce(Buffer&, uint64_t, uint64_t, Dtype, ReduceOp) override { return no(); }
  Status broadcast(Buffer&, uint64_t, int) override { return no(); }
  Status exchange(int, const Buffer&, uint64_t, Buffer&, uint64_t) override { return no(); }
  Status join() override { return {}; }
  Status barrier() override { return {}; }
  Status synchronize() override { return {}; }
  Result<double> time(const std::function<Status()>&) override { return no(); }
  Result<std::vector<double>> maxOverRanks(const std::vector<double>& values) override {
    {
      std::lock_guard lock(table_.mutex);
      table_.largest.resize(values.size(), std::numeric_limits<double>::lowest());
      for (size_t i = 0; i < values.size(); ++i) table_.largest[i] = std::max(table_.largest[i], values[i]);
    }
    table_.meet.arrive_and_wait();
    std::vector<double> largest = table_.largest;
    table_.meet.arrive_and_wait();
    {
      std::lock_guard lock(table_.mutex);
      table_.largest.clear();
    }
    table_.meet.arrive_and_wait();  // else who is late clears what belongs to the next call
    return largest;
  }
  Result<std::vector<TransportUse>> transports() override { return no(); }
  void abort() override {}

 private:
  static Error no() { return {ErrorCode::kInternal, "not part of this test", ""}; }
  Table& table_;
  int rank_;
  int size_;
};

class ThreadBackend : public Backend {
 public:
  explicit ThreadBackend(Table& table) : table_(table) {}
  [[nodiscard]] std::string name() const override { return "threads"; }
  Result<Inventory*> inventory() override { return Error{ErrorCode::kInternal, "none", ""}; }
  Result<std::unique_ptr<Device>> open(const std::string&) override {
    return Error{ErrorCode::kInternal, "none", ""};
  }
  Result<std::unique_ptr<Ops>> ops(Device&) override { return Error{ErrorCode::kInternal, "none", ""}; }
  Result<std::unique_ptr<Communicator>> communicator(Device&, const CommunicatorSpec& spec,
                                                     GroupStore&) override {
    return std::unique_ptr<Communicator>(std::make_unique<ThreadCommunicator>(table_, spec.rank, spec.size));
  }

 private:
  Table& table_;
};

class NoStore : public GroupStore {
 public:
  Status set(const std::string&, std::string_view) override { return {}; }
  Result<std::string> get(const std::string&, double) override { return std::string(); }
};

/// Runs `work` on each rank of a group, and returns what each gave.
template <typename T>
std::vector<T> onRanks(int ranks, const std::function<T(const Group&)>& work) {
  Table table(ranks);
  std::vector<T> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      NoStore store;
      OpenDevice open{std::make_unique<ThreadBackend>(table), std::make_unique<testing::VirtualDevice>()};
      auto group = Group::form(open, {{rank, ranks, true, "n" + std::to_string(rank)}, "", 10}, store);
      ASSERT_TRUE(group.ok());
      results[static_cast<size_t>(rank)] = work(*group);
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(Group, NoRankSpeaksForAnotherNorTellsWhatHasNoFiniteSum) {
  enum class Lie { kNone, kOfAnother, kTooLarge };
  constexpr int kRanks = 3;
  for (const Lie lie : {Lie::kNone, Lie::kOfAnother, Lie::kTooLarge}) {
    Table table(kRanks);
    std::vector<std::string> errors(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        ThreadCommunicator communicator(table, rank, kRanks);
        std::vector<double> values(kRanks);
        std::vector<bool> own(kRanks);
        values[static_cast<size_t>(rank)] = 0.1 * rank;  // rank 0 tells a zero
        own[static_cast<size_t>(rank)] = true;
        if (rank == 2 && lie == Lie::kOfAnother) values[0] = 5;
        if (rank == 2 && lie == Lie::kTooLarge) values[2] = 1e308;
        const auto all = gatherOverRanks(communicator, values, own);
        errors[static_cast<size_t>(rank)] = all.ok() ? "" : all.error().text();
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& error : errors)
      EXPECT_THAT(error, ::testing::HasSubstr(lie == Lie::kNone ? "" : kUntold));
    EXPECT_EQ(errors[0].empty(), lie == Lie::kNone);
  }
}

TEST(Group, NoRankSpeaksForTheLeader) {
  for (const double lie : {0.0, 5.0}) {
    const auto said = onRanks<std::string>(3, [lie](const Group& group) -> std::string {
      if (lie > 0 && group.rank() == 2) {  // raises what rank 0 tells, and is content with what it hears
        (void)group.largest({0, lie});
        (void)group.largest({0});
        return kUntold;
      }
      const auto values = group.ofLeader({-1.0 - group.rank(), 2.0 + group.rank()});
      return values.ok() ? ::testing::PrintToString(*values) : values.error().text();
    });
    for (const std::string& one : said)
      EXPECT_THAT(one, ::testing::HasSubstr(lie > 0 ? kUntold : "{ -1, 2 }"));
  }
}

TEST(Group, GathersEachRanksValues) {
  const auto rows = onRanks<std::vector<std::vector<double>>>(3, [](const Group& group) {
    return *group.gather({-1.0 * group.rank(), 1e300 * group.rank()});
  });
  for (const auto& own : rows)
    EXPECT_THAT(own, ElementsAre(ElementsAre(0, 0), ElementsAre(-1, 1e300), ElementsAre(-2, 2e300)));
}

TEST(Group, NamesTheRankWhoseNumberDiffers) {
  const uint64_t common = 0xfedcba9876543210u;
  for (int bent : {0, 2, 4}) {
    const auto named = onRanks<std::vector<int>>(
        5, [&](const Group& group) { return *group.deviants(group.rank() == bent ? common ^ 1 : common); });
    for (const auto& own : named) EXPECT_THAT(own, ElementsAre(bent)) << "every rank names the same";
  }
}

TEST(Group, BelievesRankZeroOfTwoHalvesAndNobodyIsNamedWhereAllAgree) {
  for (const auto& own : onRanks<std::vector<int>>(
           2, [](const Group& group) { return *group.deviants(7U + static_cast<uint64_t>(group.rank())); }))
    EXPECT_THAT(own, ElementsAre(1));
  for (const auto& own :
       onRanks<std::vector<int>>(4, [](const Group& group) { return *group.deviants(~0ULL); }))
    EXPECT_THAT(own, IsEmpty());
}

TEST(Group, OfOneTalksToNobody) {
  NoStore store;
  OpenDevice none;
  auto group = Group::form(none, {{0, 1, true, "n0"}, "", 10}, store);
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(group->communicator(), nullptr);
  EXPECT_EQ(group->implementation(), "none");
  EXPECT_THAT(*group->gather({4}), ElementsAre(ElementsAre(4)));
  EXPECT_THAT(*group->deviants(9), IsEmpty());
  EXPECT_TRUE(group->barrier().ok());
}

}  // namespace
}  // namespace muster::train
