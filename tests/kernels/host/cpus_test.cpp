// SPDX-License-Identifier: Apache-2.0
// Which processors work: the affinity's, the device's, no more than OMP_NUM_THREADS.
#include "kernels/host/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

namespace muster::host {
namespace {

/// OMP_NUM_THREADS for the life of the object.
class ThreadLimit {
 public:
  explicit ThreadLimit(const char* value) {
    const char* old = std::getenv("OMP_NUM_THREADS");
    if (old != nullptr) old_ = old;
    setenv("OMP_NUM_THREADS", value, 1);
  }
  ~ThreadLimit() { setenv("OMP_NUM_THREADS", old_.c_str(), 1); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  std::string old_;
};

TEST(WorkerCpus, HeedsOmpNumThreads) {
  const ThreadLimit limit("1");
  const auto cpus = workerCpus(DeviceInfo{});
  ASSERT_TRUE(cpus.ok());
  EXPECT_EQ(cpus->size(), 1u);
}

TEST(WorkerCpus, TakesAllCoresWithoutALimit) {
  for (const char* none : {"", "many", "0", "-3"}) {
    const ThreadLimit limit(none);
    const auto cpus = workerCpus(DeviceInfo{});
    ASSERT_TRUE(cpus.ok());
    EXPECT_GE(cpus->size(), 1u);
    EXPECT_LE(cpus->size(), std::thread::hardware_concurrency());
  }
}

TEST(WorkerCpus, SaysThatNoneOfTheDevicesProcessorsMayBeUsed) {
  DeviceInfo info;
  info.id = "cpu9";
  info.cpus = {8000, 8001};
  const auto cpus = workerCpus(info);
  ASSERT_FALSE(cpus.ok());
  EXPECT_NE(cpus.error().text().find("cpu9: this process may run on processors"), std::string::npos);
  EXPECT_NE(cpus.error().text().find("8000-8001"), std::string::npos);
}

TEST(WorkerCpus, KeepsToTheAffinity) {
  std::thread([] {
    const auto all = workerCpus(DeviceInfo{});
    ASSERT_TRUE(all.ok());
    ASSERT_TRUE(bindThread({all->back()}).ok());
    const auto bound = workerCpus(DeviceInfo{});
    ASSERT_TRUE(bound.ok());
    EXPECT_EQ(*bound, std::vector<int>{all->back()});
    EXPECT_EQ(sched_getcpu(), all->back());
  }).join();
}

TEST(BindThread, NamesTheProcessorsThatCannotBeHad) {
  const Status status = bindThread({8000});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().text().find("cannot bind to processors 8000"), std::string::npos);
}

}  // namespace
}  // namespace muster::host
