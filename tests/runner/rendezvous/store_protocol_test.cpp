// SPDX-License-Identifier: Apache-2.0
// Requests and addresses as bytes: round trips, every truncation.
#include "runner/rendezvous/wire/store_protocol.h"

#include <gtest/gtest.h>

#include <set>

#include "runner/rendezvous/wire/store_address.h"

namespace muster {
namespace {

TEST(StoreProtocol, ReadsWhatItWrites) {
  const StoreRequest request{StoreOp::kSet, 1234, 7, 9, std::string("k\0y", 3), std::string("\xff\0v", 3),
                             0xfedcba98};
  const std::string bytes = encodeStoreRequest(request);
  ASSERT_EQ(readStoreLength(bytes), bytes.size() - kStoreLength);
  const auto back = decodeStoreRequest(std::string_view(bytes).substr(kStoreLength));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->op, request.op);
  EXPECT_EQ(back->timeoutMs, 1234);
  EXPECT_EQ(back->number, 7);
  EXPECT_EQ(back->count, 9);
  EXPECT_EQ(back->key, request.key);
  EXPECT_EQ(back->value, request.value);
  EXPECT_EQ(back->id, 0xfedcba98);
}

TEST(StoreProtocol, ReadsTheRepliesThatItWrites) {
  const std::string bytes = encodeStoreReplyHead(StoreAnswer::kUnavailable, 0xfedcba98, 3) + "why";
  ASSERT_EQ(readStoreLength(bytes), bytes.size() - kStoreLength);
  const auto back = decodeStoreReply(std::string_view(bytes).substr(kStoreLength));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->answer, StoreAnswer::kUnavailable);
  EXPECT_EQ(back->id, 0xfedcba98);
  EXPECT_EQ(back->text, "why");
  EXPECT_FALSE(decodeStoreReply("\5aaaa").ok()) << "an unknown status";
  EXPECT_FALSE(decodeStoreReply(std::string_view("\0aaa", 4)).ok());
}

TEST(StoreProtocol, RefusesEveryTruncationBelowTheKey) {
  const std::string bytes = encodeStoreRequest({StoreOp::kGet, 1, 0, 0, "key", ""});
  const std::string_view body = std::string_view(bytes).substr(kStoreLength);
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(decodeStoreRequest(body.substr(0, size)).ok()) << size;
}

TEST(StoreProtocol, RefusesChangesThatAreCutShort) {
  StoreChanges changes;
  changes.version = 12345678901;
  changes.more = true;
  changes.entries = {{"a", "1"}, {"", ""}, {"key", std::string(300, 'v')}};
  const std::string text = encodeStoreChanges(changes);
  const auto back = decodeStoreChanges(text);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->version, changes.version);
  EXPECT_TRUE(back->more);
  EXPECT_EQ(back->entries, changes.entries);
  const std::set<size_t> whole = {9, 19, 27, text.size()};  // after the head, and after each entry
  for (size_t size = 0; size <= text.size(); ++size)
    EXPECT_EQ(decodeStoreChanges(std::string_view(text).substr(0, size)).ok(), whole.count(size) > 0) << size;
}

TEST(StoreAddress, ReadsNamesAndBothKindsOfNumbers) {
  EXPECT_EQ(*parseStoreAddress("node-0:29400"), (StoreAddress{"node-0", 29400}));
  EXPECT_EQ(*parseStoreAddress("10.0.0.1:1"), (StoreAddress{"10.0.0.1", 1}));
  EXPECT_EQ(*parseStoreAddress("[fd00::1]:65535"), (StoreAddress{"fd00::1", 65535}));
  EXPECT_EQ(parseStoreAddress("[fd00::1]:65535")->text(), "[fd00::1]:65535");
  EXPECT_EQ(parseStoreAddress("node-0:29400")->text(), "node-0:29400");
  EXPECT_EQ(*parseStoreAddress("node-0"), (StoreAddress{"node-0", 0}));
  EXPECT_EQ(*parseStoreAddress("[fd00::1]"), (StoreAddress{"fd00::1", 0}));
  EXPECT_EQ(parseStoreAddress("node-0")->text(), "node-0");
}

TEST(StoreAddress, SaysWhatIsWrong) {
  for (const char* text : {"", "node:", "fd00::1", "[]", "[", ":29400", "node:0", "node:65536", "node:-1",
                           "node:29400x", "fd00::1:29400", "[]:1", "no de:1", "http://node:1", "node\n:1"}) {
    const auto address = parseStoreAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_NE(address.error().text().find("required: host:port"), std::string::npos);
  }
}

}  // namespace
}  // namespace muster
