// SPDX-License-Identifier: Apache-2.0
// The pool: each worker once a round, every byte in exactly one share.
#include "kernels/host/thread_pool.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <vector>

#include "kernels/host/cpus.h"

namespace muster::host {
namespace {

/// `n` workers on the first processor that this process may use: more workers than cores is slow, not wrong.
std::vector<int> cpusFor(size_t n) {
  auto cpus = workerCpus(DeviceInfo{});
  EXPECT_TRUE(cpus.ok());
  return std::vector<int>(n, cpus->front());
}

TEST(ThreadPool, CallsEachWorkerOnceARound) {
  ThreadPool pool(cpusFor(3));
  std::vector<int> calls(pool.size());
  for (int round = 0; round < 200; ++round) pool.run([&](size_t worker) { ++calls[worker]; });
  EXPECT_EQ(calls, (std::vector<int>{200, 200, 200}));
}

TEST(ThreadPool, LetsTheCallerWorkWhenItIsAlone) {
  ThreadPool pool(cpusFor(1));
  const auto self = std::this_thread::get_id();
  pool.run([&](size_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
  EXPECT_EQ(pool.size(), 1u);
}

TEST(ThreadPool, CoversEveryByteExactlyOnce) {
  ThreadPool pool(cpusFor(3));
  for (uint64_t bytes : {1ull, 7ull, 4096ull, 4097ull, 40961ull, 1000000ull}) {
    std::mutex mutex;
    std::set<std::pair<uint64_t, uint64_t>> shares;
    pool.split(bytes, [&](size_t, uint64_t begin, uint64_t end) {
      const std::lock_guard lock(mutex);
      if (begin < end) shares.emplace(begin, end);
    });
    uint64_t at = 0;
    for (const auto& [begin, end] : shares) {
      EXPECT_EQ(begin, at);
      EXPECT_EQ(begin % 4096, 0u);
      at = end;
    }
    EXPECT_EQ(at, bytes);
  }
}

TEST(ThreadPool, GivesAWorkerTheSameShareEachTime) {
  ThreadPool pool(cpusFor(2));
  std::vector<uint64_t> first(2), second(2);
  pool.split(100000, [&](size_t worker, uint64_t begin, uint64_t) { first[worker] = begin; });
  pool.split(100000, [&](size_t worker, uint64_t begin, uint64_t) { second[worker] = begin; });
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace muster::host
