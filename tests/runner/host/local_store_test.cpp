// SPDX-License-Identifier: Apache-2.0
// The store of one rank: values, waits that end, bounds.
#include "runner/host/local_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace muster {
namespace {

using ::testing::HasSubstr;

bool never() {
  return false;
}

TEST(LocalStore, GivesWhatWasSet) {
  LocalStore store;
  ASSERT_TRUE(store.set("key", std::string("a\0b", 3)).ok());
  ASSERT_TRUE(store.set("key", "second").ok());
  EXPECT_EQ(*store.get("key", 0, never), "second");
}

TEST(LocalStore, WaitsForAnotherThread) {
  LocalStore store;
  std::thread setter([&] { EXPECT_TRUE(store.set("late", "value").ok()); });
  const Result<std::string> value = store.get("late", std::numeric_limits<double>::infinity(), never);
  setter.join();
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, "value");
}

TEST(LocalStore, EndsEveryWait) {
  LocalStore store;
  EXPECT_THAT(store.get("none", 0.01, never).error().text(),
              HasSubstr("store key none was not set in 0.01 s"));
  EXPECT_THAT(store.get("none", 1e9, [] { return true; }).error().text(),
              HasSubstr("cancelled while waiting"));
  EXPECT_THAT(store.get("none", std::nan(""), never).error().text(), HasSubstr("store timeout nan"));
  EXPECT_THAT(store.get("none", -1, never).error().text(), HasSubstr("store timeout -1"));
}

TEST(LocalStore, BoundsKeysAndTotal) {
  LocalStore store;
  EXPECT_FALSE(store.set("", "x").ok());
  EXPECT_FALSE(store.set(std::string(LocalStore::kMaxKey + 1, 'k'), "x").ok());
  const std::string half(LocalStore::kMaxTotal / 2, 'v');
  EXPECT_TRUE(store.set("a", half).ok());
  EXPECT_FALSE(store.set("b", half).ok());
  EXPECT_TRUE(store.set("a", "small").ok());
  EXPECT_TRUE(store.set("b", half).ok());
}

}  // namespace
}  // namespace muster
