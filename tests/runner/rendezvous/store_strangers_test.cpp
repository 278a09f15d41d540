// SPDX-License-Identifier: Apache-2.0
#include "runner/rendezvous/store_strangers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <random>
#include <set>

namespace muster {
namespace {

sockaddr_storage address(const std::string& text) {
  sockaddr_storage made{};
  auto& four = reinterpret_cast<sockaddr_in&>(made);
  auto& six = reinterpret_cast<sockaddr_in6&>(made);
  if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1)
    made.ss_family = AF_INET;
  else if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1)
    made.ss_family = AF_INET6;
  else
    ADD_FAILURE() << text;
  return made;
}

std::string network(const std::string& peer, const std::string& own = "10.0.0.1") {
  return StoreStrangers::networkOf(address(peer), address(own));
}

TEST(StoreStrangers, OfThisMachineAreOneNetwork) {
  EXPECT_EQ(network("127.0.0.1", "127.0.0.1"), network("127.3.2.1", "127.0.0.1"));
  EXPECT_EQ(network("127.0.0.2"), network("10.0.0.1"));
  EXPECT_EQ(network("::1", "::1"), network("127.0.0.1"));
  EXPECT_EQ(network("::ffff:127.0.0.9", "::ffff:10.0.0.1"), network("::ffff:10.0.0.1", "::ffff:10.0.0.1"));
  EXPECT_EQ(network("2001:db8::7", "2001:db8::7"), network("127.0.0.1"));
}

TEST(StoreStrangers, OfOtherMachinesAreTheirNetworks) {
  EXPECT_NE(network("10.0.0.2"), network("10.0.0.3"));
  EXPECT_EQ(network("::ffff:10.0.0.2", "::1"), network("10.0.0.2"));
  EXPECT_EQ(network("2001:db8::2", "2001:db8::1"), network("2001:db8::ffff", "2001:db8::1"));
  EXPECT_NE(network("2001:db8::2", "2001:db8::1"), network("2001:db8:0:1::2", "2001:db8::1"));
}

TEST(StoreStrangers, LoseTheOldestOfTheLargestNetwork) {
  StoreStrangers strangers;
  strangers.add(1, "a");
  for (StorePeerId id = 2; id < 5; ++id) strangers.add(id, "b");
  strangers.add(5, "c");
  EXPECT_EQ(strangers.crowded(), 2U);
  EXPECT_TRUE(strangers.remove(2));
  EXPECT_EQ(strangers.crowded(), 3U);
}

/// Whatever its address, one that came last stays until all who came before it are gone.
TEST(StoreStrangers, EachFromAnAddressOfItsOwnGoInTheOrderTheyCame) {
  std::mt19937 random(7);
  StoreStrangers strangers;
  std::set<std::string> used;
  for (StorePeerId id = 1; id <= 300; ++id) {
    std::string name = std::to_string(random());
    while (!used.insert(name).second) name = std::to_string(random());
    strangers.add(id, name);
  }
  for (StorePeerId id = 1; id <= 300; ++id) {
    ASSERT_EQ(strangers.crowded(), id);
    strangers.remove(id);
  }
}

}  // namespace
}  // namespace muster
