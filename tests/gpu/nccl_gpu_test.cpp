// SPDX-License-Identifier: Apache-2.0
// NCCL with 2 and 4 ranks on one GPU: a host id of its own makes each rank a host to NCCL, so that they talk
// through sockets. This proves function and not speed. Each rank is a process: this program again.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "tests/gpu/gpu.h"

extern char** environ;

namespace muster::gpu {
namespace {

namespace fs = std::filesystem;

/// A key-value store in a folder that all ranks share.
class FolderStore : public GroupStore {
 public:
  explicit FolderStore(fs::path folder) : folder_(std::move(folder)) {}
  Status set(const std::string& key, std::string_view value) override {
    const fs::path open = fileOf(key).string() + ".open" + std::to_string(getpid());
    std::ofstream(open, std::ios::binary) << value;
    fs::rename(open, fileOf(key));
    return {};
  }
  Result<std::string> get(const std::string& key, double timeout) override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
    while (std::chrono::steady_clock::now() < until) {
      if (std::ifstream file(fileOf(key), std::ios::binary); file)
        return std::string(std::istreambuf_iterator<char>(file), {});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return Error{ErrorCode::kTimeout, "the key did not come", key};
  }

 private:
  [[nodiscard]] fs::path fileOf(std::string key) const {
    std::replace(key.begin(), key.end(), '/', '_');
    return folder_ / key;
  }
  fs::path folder_;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// One rank's place, from its environment.
struct Place {
  int rank = std::atoi(variable("MUSTER_GPU_RANK").c_str());
  int size = std::atoi(variable("MUSTER_GPU_RANKS").c_str());
  std::string folder = variable("MUSTER_GPU_STORE");
};

CommunicatorSpec specOf(const Place& place, double timeout) {
  CommunicatorSpec spec;
  spec.name = "group";
  spec.rank = place.rank;
  spec.size = place.size;
  spec.timeout = timeout;
  spec.interface = "lo";
  spec.settings = {{"NCCL_HOSTID", "muster-host-" + std::to_string(place.rank)}, {"NCCL_IB_DISABLE", "1"}};
  return spec;
}

/// A formed group and its device.
struct Rank {
  explicit Rank(double timeout = 60) : store(place.folder), device(openGpu()) {
    auto formed = backend("cuda").communicator(*device, specOf(place, timeout), store);
    EXPECT_TRUE(formed.ok()) << (formed.ok() ? "" : formed.error().text());
    if (formed.ok()) group = std::move(*formed);
  }
  Place place;
  FolderStore store;
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> group;
};

void expectRight(Communicator& group, const CollectiveSpec& spec) {
  SCOPED_TRACE(std::string(collectiveOpName(spec.op)) + " " + dtypeName(spec.dtype) + " " +
               reduceOpName(spec.reduce) + " " + std::to_string(spec.count) +
               (spec.inPlace ? " in place" : ""));
  auto work = group.collective(spec);
  ASSERT_TRUE(work.ok()) << work.error().text();
  ASSERT_TRUE((*work)->prepare(11).ok());
  const Status ran = (*work)->run();
  ASSERT_TRUE(ran.ok()) << ran.error().text();
  const auto found = (*work)->check();
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->wrong, 0u) << "first at " << found->firstElement;
}

constexpr CollectiveOp kOps[] = {
    CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
    CollectiveOp::kBroadcast, CollectiveOp::kReduce,    CollectiveOp::kAllToAll,
    CollectiveOp::kGather,    CollectiveOp::kScatter,   CollectiveOp::kSendRecv};

void everyCollective() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  for (const CollectiveOp op : kOps)
    for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kI8})
      for (const uint64_t count : {1, 3, 1000, 65537})
        for (const bool inPlace : {false, true}) {
          if (inPlace && !worksInPlace(op)) continue;
          CollectiveSpec spec;
          spec.op = op;
          spec.dtype = dtype;
          spec.count = count;
          spec.inPlace = inPlace;
          spec.root = me.place.size - 1;
          expectRight(*me.group, spec);
        }
}

void everyReduction() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  for (const ReduceOp reduce :
       {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg})
    for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kI8})
      for (const CollectiveOp op :
           {CollectiveOp::kAllReduce, CollectiveOp::kReduceScatter, CollectiveOp::kReduce}) {
        CollectiveSpec spec;
        spec.op = op;
        spec.dtype = dtype;
        spec.reduce = reduce;
        spec.count = 4099;
        expectRight(*me.group, spec);
      }
}

void graphs() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  for (const CollectiveOp op :
       {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kAllToAll}) {
    CollectiveSpec spec;
    spec.op = op;
    spec.count = 5000;
    auto work = me.group->collective(spec);
    ASSERT_TRUE(work.ok());
    EXPECT_FALSE((*work)->replay().ok());
    ASSERT_TRUE((*work)->prepare(3).ok());
    ASSERT_TRUE((*work)->run().ok());  // connects
    const Status recorded = (*work)->record(4);
    ASSERT_TRUE(recorded.ok()) << recorded.error().text();
    ASSERT_TRUE((*work)->prepare(4).ok());  // clears the result
    const auto took = me.group->time([&] { return (*work)->replay(); });
    ASSERT_TRUE(took.ok()) << took.error().text();
    EXPECT_GT(*took, 0);
    const auto found = (*work)->check();
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->wrong, 0u) << collectiveOpName(op);
  }
}

/// One rank puts in other values than it should: everybody finds it and names it.
void aWrongRank() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  const int culprit = 1;
  for (const CollectiveOp op : {CollectiveOp::kAllReduce, CollectiveOp::kAllGather}) {
    CollectiveSpec spec;
    spec.op = op;
    spec.count = 1000;
    auto work = me.group->collective(spec);
    ASSERT_TRUE(work.ok());
    ASSERT_TRUE((*work)->prepare(me.place.rank == culprit ? 99 : 3).ok());
    ASSERT_TRUE((*work)->run().ok());
    const auto found = (*work)->check();
    ASSERT_TRUE(found.ok());
    EXPECT_GT(found->wrong, 0u);
    if (me.place.rank != culprit && (me.place.size > 2 || op == CollectiveOp::kAllGather)) {
      EXPECT_EQ(found->source, culprit);
    }
  }
}

void buffersOfTraining() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  constexpr uint64_t kCount = 100003;
  auto gradients = me.device->allocate(kCount * 4);
  auto wanted = me.device->allocate(kCount * 4);
  ASSERT_TRUE(gradients.ok() && wanted.ok());
  ASSERT_TRUE(me.device->fillNormal(**gradients, Dtype::kF32, 5).ok());
  ASSERT_TRUE(me.device->fillNormal(**wanted, Dtype::kF32, 5).ok());
  // The mean of equal values, of 2 or 4 ranks: the same bits. In two buckets, the later one first.
  ASSERT_TRUE(me.group->allReduce(**gradients, 50000, kCount - 50000, Dtype::kF32, ReduceOp::kAvg).ok());
  ASSERT_TRUE(me.group->allReduce(**gradients, 0, 50000, Dtype::kF32, ReduceOp::kAvg).ok());
  ASSERT_TRUE(me.group->join().ok());
  const auto same = me.device->compareBits(**gradients, **wanted, Dtype::kF32);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->wrong, 0u);
  // Everybody gets the root's bytes.
  ASSERT_TRUE(
      me.device->fillNormal(**gradients, Dtype::kF32, static_cast<uint64_t>(100 + me.place.rank)).ok());
  ASSERT_TRUE(me.device->fillNormal(**wanted, Dtype::kF32, 101).ok());
  ASSERT_TRUE(me.group->broadcast(**gradients, kCount * 4, 1).ok());
  const auto sent = me.device->compareBits(**gradients, **wanted, Dtype::kF32);
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->wrong, 0u);
  EXPECT_FALSE(me.group->allReduce(**gradients, 1, kCount, Dtype::kF32, ReduceOp::kSum).ok());
}

void exchanges() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  constexpr uint64_t kBytes = 1 << 20;
  const int peer = me.place.rank ^ 1;
  auto mine = me.device->allocate(kBytes);
  auto theirs = me.device->allocate(kBytes);
  ASSERT_TRUE(mine.ok() && theirs.ok());
  ASSERT_TRUE(me.device->fillPattern(**mine, static_cast<uint64_t>(1000 + me.place.rank)).ok());
  ASSERT_TRUE(me.device->synchronize().ok());
  ASSERT_TRUE(me.group->exchange(peer, **mine, kBytes, **theirs, kBytes).ok());
  ASSERT_TRUE(me.group->synchronize().ok());
  const auto found = me.device->checkPattern(**theirs, static_cast<uint64_t>(1000 + peer));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->wrong, 0u);
  EXPECT_FALSE(me.group->exchange(me.place.rank, **mine, 1, **theirs, 1).ok());
  std::vector<double> values(5000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i * (1 + static_cast<size_t>(me.place.rank)));
  const auto largest = me.group->maxOverRanks(values);
  ASSERT_TRUE(largest.ok());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ((*largest)[i], static_cast<double>(i * static_cast<size_t>(me.place.size)));
  ASSERT_TRUE(me.group->barrier().ok());
}

void transportsAndSettings() {
  Rank me;
  ASSERT_NE(me.group, nullptr);
  CollectiveSpec spec;
  spec.count = 1 << 20;
  expectRight(*me.group, spec);
  const auto uses = me.group->transports();
  ASSERT_TRUE(uses.ok()) << uses.error().text();
  ASSERT_FALSE(uses->empty());
  EXPECT_EQ(uses->front().transport, "socket") << uses->front().evidence;
  EXPECT_GT(uses->front().bytes, 1e6);
  const auto settings = me.group->settingsUse();
  ASSERT_TRUE(settings.ok()) << settings.error().text();
  EXPECT_GE(settings->taken.size(), 1u);
  if (me.place.rank == 0)
    std::printf("%s; %s\n", me.group->implementation().c_str(), uses->front().evidence.c_str());
}

/// The last rank ends without a word; the others get an error, by their deadline at the latest.
void aLostRank() {
  Rank me(10);
  ASSERT_NE(me.group, nullptr);
  ASSERT_TRUE(me.group->barrier().ok());
  if (me.place.rank == me.place.size - 1) _exit(0);
  const double begin = me.device->now();
  EXPECT_FALSE(me.group->barrier().ok());
  EXPECT_LT(me.device->now() - begin, 60);
  EXPECT_FALSE(me.group->barrier().ok());  // it stays broken
}

void aRankThatNeverComes() {
  Place place;
  if (place.rank == place.size - 1) return;
  FolderStore store(place.folder);
  const auto device = openGpu();
  const auto formed = backend("cuda").communicator(*device, specOf(place, 5), store);
  ASSERT_FALSE(formed.ok());
  EXPECT_EQ(formed.error().code, ErrorCode::kTimeout) << formed.error().text();
}

const std::map<std::string, std::function<void()>>& roles() {
  static const std::map<std::string, std::function<void()>> all = {{"collectives", everyCollective},
                                                                   {"reductions", everyReduction},
                                                                   {"graphs", graphs},
                                                                   {"wrong", aWrongRank},
                                                                   {"training", buffersOfTraining},
                                                                   {"exchanges", exchanges},
                                                                   {"transports", transportsAndSettings},
                                                                   {"lost", aLostRank},
                                                                   {"missing", aRankThatNeverComes}};
  return all;
}

/// What a process that plays one rank does.
TEST(NcclRank, DISABLED_Plays) {
  roles().at(variable("MUSTER_GPU_ROLE"))();
}

pid_t spawnRank(const std::string& role, int rank, int ranks, const fs::path& store) {
  std::vector<std::string> variables = {"MUSTER_GPU_ROLE=" + role, "MUSTER_GPU_RANK=" + std::to_string(rank),
                                        "MUSTER_GPU_RANKS=" + std::to_string(ranks),
                                        "MUSTER_GPU_STORE=" + store.string()};
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  std::vector<char*> environment;
  for (std::string& one : variables) environment.push_back(one.data());
  environment.push_back(nullptr);
  std::string program = fs::read_symlink("/proc/self/exe").string();
  std::string filter = "--gtest_filter=NcclRank.DISABLED_Plays", disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  return pid;
}

void play(const std::string& role, int ranks) {
  std::string folder = (fs::temp_directory_path() / "muster-nccl-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) pids.push_back(spawnRank(role, rank, ranks, folder));
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(pids[static_cast<size_t>(rank)], &status, 0), pids[static_cast<size_t>(rank)]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << role << ": rank " << rank << " ended " << status;
  }
  fs::remove_all(folder);
}

class Nccl : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, testing::Values(2, 4));

TEST_P(Nccl, IsExactInEveryCollectiveAndType) {
  play("collectives", GetParam());
}
TEST_P(Nccl, IsExactInEveryReduction) {
  play("reductions", GetParam());
}
TEST_P(Nccl, RunsAsGraphs) {
  play("graphs", GetParam());
}
TEST_P(Nccl, NamesARankThatPutsInWrongValues) {
  play("wrong", GetParam());
}
TEST_P(Nccl, AddsUpGradientsAndSpreadsParameters) {
  play("training", GetParam());
}
TEST_P(Nccl, ExchangesWithAPeer) {
  play("exchanges", GetParam());
}
TEST_P(Nccl, ProvesTransportAndSettings) {
  play("transports", GetParam());
}
TEST_P(Nccl, OutlivesARankThatIsLost) {
  play("lost", GetParam());
}
TEST_P(Nccl, GivesUpOnARankThatNeverComes) {
  play("missing", GetParam());
}

}  // namespace
}  // namespace muster::gpu
