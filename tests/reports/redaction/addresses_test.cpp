// SPDX-License-Identifier: Apache-2.0
// Addresses are found in every writing that programs use, and nothing that only looks alike is.
#include "reports/redaction/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Addresses, AreFoundAsProgramsWriteThem) {
  const auto only = [](const std::string& text, const std::string& address) {
    EXPECT_THAT(addressesIn(text), ElementsAre(address)) << text;
  };
  only("10.0.0.1", "10.0.0.1");
  only("lost 10.0.0.1.", "10.0.0.1");
  only("tcp://10.0.0.1:29400/x", "10.0.0.1");
  only("NCCL INFO Bootstrap : Using eth0:10.0.0.17<0>", "10.0.0.17");
  only("NET/Socket : Using [0]eth0:fd00::17<0>", "fd00::17");
  only("ip-10.0.0.1_up", "10.0.0.1");
  only("::ffff:10.0.0.1", "10.0.0.1");
  only("rendezvous [fd00::17]:29400", "fd00::17");
  only("rendezvous fd00::17:29400", "fd00::17");
  only("FD00::17,", "FD00::17");
  only("fe80::1%eth0", "fe80::1");
  only("[1::17]:29400", "1::17");
  only("via 2001:db8::17.", "2001:db8::17");
  only("net 2001:db8::/32", "2001:db8::");
  only("fe80:0:0:0:0c42:a1ff:fe12:3456", "fe80:0:0:0:0c42:a1ff:fe12:3456");
  only("ether b8:3f:d2:00:11:22 txqueuelen", "b8:3f:d2:00:11:22");
  only("mac:b8:3f:d2:00:11:22", "b8:3f:d2:00:11:22");
  only("mac 0c-42-a1-12-34-56", "0c-42-a1-12-34-56");
  only("wwn 80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:12:34:56",
       "80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:12:34:56");
  EXPECT_THAT(addressesIn("10.0.0.1-10.0.0.9"), UnorderedElementsAre("10.0.0.1", "10.0.0.9"));
}

TEST(Addresses, AreNothingThatOnlyLooksAlike) {
  for (const char* text : {"",
                           ":",
                           "::",
                           "-",
                           ".",
                           "12:34:56",
                           "2026-11-25T12:34:56.789Z",
                           "25-11-26-12-34-56",
                           "ns::name",
                           "std::abs(x)",
                           "std::add1::run",
                           "c10::add",
                           "c10::d1::",
                           "abs::fd00",
                           "cafe::run",
                           "x[1::2]",
                           "a[0][1::2]",
                           "v1.2.3.4",
                           "580.95.05",
                           "libcudnn.so.9.1.0.70",
                           "96.00.74.00.01",
                           "127.0.0.1",
                           "0.0.0.0",
                           "::1",
                           "0000:17:00.0",
                           "00000000:17:00.0",
                           "0:1:2:3:4:5:6:7",
                           "1:2",
                           "fe80::/10",
                           "GPU-2754677a-c8c8-4539-d2c0-6a8297de39c6",
                           "00:00:00:00:00:00",
                           "FF:ff:ff:ff:ff:ff",
                           "1.5e-3",
                           "100.0",
                           "gpu0:gpu1"})
    EXPECT_THAT(addressesIn(text), IsEmpty()) << text;
}

TEST(Addresses, AreSearchedWithinTheirWord) {
  std::string text;
  while (text.size() < 5'000'000) text += "q2q 2q ";  // each digit goes on as a word: no address
  EXPECT_THAT(addressesIn(text + "fe80::1"), ElementsAre("fe80::1"));
}

TEST(Addresses, AndIdsHaveOtherWritings) {
  EXPECT_THAT(otherWritings("0C-42-a1-12-34-56"),
              UnorderedElementsAre("0c:42:a1:12:34:56", "0c42.a112.3456", "0c42:a112:3456", "0c42a1123456"));
  EXPECT_THAT(otherWritings("0c42:a103:0012:3456"), Contains("0c42a10300123456"));
  EXPECT_THAT(
      otherWritings("GPU-2754677A-c8c8-4539-d2c0-6a8297de39c6"),
      UnorderedElementsAre("2754677a-c8c8-4539-d2c0-6a8297de39c6", "2754677ac8c84539d2c06a8297de39c6"));
  EXPECT_THAT(otherWritings("2754677ac8c84539d2c06a8297de39c6"),
              ElementsAre("2754677a-c8c8-4539-d2c0-6a8297de39c6"));
  for (const char* text : {"", "node17", "1329502444170", "10.0.0.1", "fd00::17", "0000:0000:0000:0000",
                           "00000000-0000-0000-0000-000000000000"})
    EXPECT_THAT(otherWritings(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace muster
