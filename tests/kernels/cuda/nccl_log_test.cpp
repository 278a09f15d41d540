// SPDX-License-Identifier: Apache-2.0
// NCCL's log, read: the lines of its releases, pieces of lines, and logs that nobody meant well.
#include "kernels/cuda/nccl/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

NcclLog read(const std::string& text) {
  NcclLogReader reader;
  reader.feed(text);
  return reader.log();
}

std::string info(const std::string& text) {
  return "node-3:8812:8845 [0] NCCL INFO " + text + "\n";
}

TEST(NcclLog, TellsVersionAndNetwork) {
  const NcclLog log = read("NCCL version 2.28.9+cuda13.0\n" + info("Using network AWS Libfabric"));
  EXPECT_EQ(log.version, "2.28.9+cuda13.0");
  EXPECT_EQ(log.network, "AWS Libfabric");
  EXPECT_EQ(log.lines, 2u);
  EXPECT_EQ(log.unread, 0u);
}

TEST(NcclLog, TellsWhatWasTakenFromTheEnvironment) {
  const NcclLog log =
      read(info("NCCL_IB_TIMEOUT set by environment to 23.") + info("NCCL_ALGO set by environment to Ring") +
           info("NCCL_TOPO_FILE set by environment to /etc/topo.xml.") +
           info("NCCL_NET_GDR_LEVEL set by environment to PIX") + info("NCCL_IB_HCA set to mlx5") +
           info("Comm config minCTAs reset to NCCL_MIN_CTAS=8"));
  EXPECT_THAT(log.environment,
              ElementsAre(Pair("NCCL_ALGO", "Ring"), Pair("NCCL_IB_HCA", "mlx5"),
                          Pair("NCCL_IB_TIMEOUT", "23"), Pair("NCCL_MIN_CTAS", "8"),
                          Pair("NCCL_NET_GDR_LEVEL", "PIX"), Pair("NCCL_TOPO_FILE", "/etc/topo.xml.")));
}

TEST(NcclLog, CountsConnectionsByTheirWay) {
  const NcclLog log =
      read(info("Channel 00/24 :    0   1   2   3") + info("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read") +
           info("Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read") +
           info("Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/3(7)/GDRDMA/Shared") +
           info("Channel 02 : 0[0] -> 1[1] via SHM/direct/direct") +
           info("CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA") +
           info("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer"));
  EXPECT_THAT(log.connections, ElementsAre(Pair("COLLNET/SHARP/0/GDRDMA", 1),
                                           Pair("NET/IB/3(7)/GDRDMA/Shared", 1), Pair("P2P/CUMEM/read", 2),
                                           Pair("P2P/direct pointer", 1), Pair("SHM/direct/direct", 1)));
  EXPECT_EQ(log.unread, 0u);
}

TEST(NcclLog, ListsTheHcasOfTheInfinibandTransport) {
  const NcclLog log = read(info("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:2/RoCE [RO]; OOB eth0:10.0.0.1<0>"));
  ASSERT_THAT(log.hcas, SizeIs(2));
  EXPECT_EQ(log.hcas.at(0).name, "mlx5_0");
  EXPECT_EQ(log.hcas.at(0).kind, "IB");
  EXPECT_EQ(log.hcas.at(1).port, 2);
  EXPECT_EQ(log.hcas.at(1).kind, "RoCE");
}

TEST(NcclLog, TellsGraphsChannelsAndMulticast) {
  const NcclLog log =
      read(info("Pattern 4, crossNic 0, nChannels 12, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1") +
           info("24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels "
                "per peer") +
           info("NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)") +
           info("comm 0x5581 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL 1"));
  ASSERT_THAT(log.graphs, SizeIs(1));
  EXPECT_EQ(log.graphs[0].pattern, 4);
  EXPECT_EQ(log.graphs[0].channels, 12);
  EXPECT_EQ(log.graphs[0].inside, "NVL");
  EXPECT_EQ(log.graphs[0].between, "PIX");
  EXPECT_EQ(log.channels, 24);
  EXPECT_EQ(log.nvlsChannels, 16);
  EXPECT_TRUE(log.nvls);
  EXPECT_TRUE(log.mnnvl);
  const NcclLog without = read(info("NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)") +
                               info("comm 0x5581 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0"));
  EXPECT_FALSE(without.nvls);
  EXPECT_FALSE(without.mnnvl);
}

TEST(NcclLog, KeepsTheLastWarnings) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text +=
        "[2026-01-02 03:04:05] node-3:1:2 [0] transport/net_ib.cc:84 NCCL WARN NET/IB : Got async event " +
        std::to_string(i) + "\n";
  const NcclLog log = read(text);
  ASSERT_THAT(log.warnings, SizeIs(8));
  EXPECT_EQ(log.warnings.back(), "NET/IB : Got async event 19");
}

TEST(NcclLog, GoesOnInTheMiddleOfALine) {
  const std::string text = info("Using network IB") + info("NCCL_IB_TIMEOUT set by environment to 23.") +
                           info("Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM");
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    NcclLogReader reader;
    reader.feed(text.substr(0, cut));
    reader.feed(text.substr(cut));
    EXPECT_EQ(reader.log().network, "IB");
    EXPECT_EQ(reader.log().environment.at("NCCL_IB_TIMEOUT"), "23");
    EXPECT_EQ(reader.log().connections.at("P2P/CUMEM"), 1u);
    EXPECT_EQ(reader.log().lines, 3u);
  }
}

TEST(NcclLog, TakesNothingFromALineThatIsStillOpen) {
  NcclLogReader reader;
  reader.feed("n:1:2 [0] NCCL INFO Using network IB");
  EXPECT_EQ(reader.log().network, "");
}

TEST(NcclLog, StaysBoundedWhateverItIsFed) {
  NcclLogReader reader;
  reader.feed(std::string(10 << 20, 'x') + "\n");
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i);
    reader.feed(info("Channel 00/0 : 0[0] -> 1[1] via P2P/" + n));
    reader.feed(info("NCCL_X" + n + " set by environment to " + n));
    reader.feed(info("Pattern 4, crossNic 0, nChannels 1, bw 1/1, type NVL/PIX, sameChannels 1"));
    reader.feed(info("NET/IB : Using [" + n + "]mlx5_0:1/IB"));
  }
  const NcclLog& log = reader.log();
  EXPECT_LE(log.connections.size(), NcclLogReader::kMostEntries);
  EXPECT_LE(log.environment.size(), NcclLogReader::kMostEntries);
  EXPECT_LE(log.graphs.size(), NcclLogReader::kMostEntries);
  EXPECT_LE(log.hcas.size(), NcclLogReader::kMostEntries);
}

TEST(NcclLog, CountsWhatItDoesNotUnderstandAndInventsNothing) {
  const std::string hostile = info("Channel") + info(" via ") + info("Pattern x, nChannels , type ") +
                              info("Pattern 4, nChannels 9999999999999, type /") +
                              info("NET/IB : Using [[[[0]]]] [1]:/ [99999999999999999999]a:1/IB [2]x:y/IB") +
                              info("AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={a..b}") +
                              info("lower_case set by environment to 1") + info(" set by environment to 1") +
                              std::string("\0\x01\x7f\xff\n\n", 6) + info(" coll channels, x nvls channels") +
                              "NCCL INFO";
  const NcclLog log = read(hostile);
  EXPECT_TRUE(log.connections.empty());
  EXPECT_TRUE(log.graphs.empty());
  EXPECT_TRUE(log.hcas.empty());
  EXPECT_TRUE(log.environment.empty());
  EXPECT_EQ(log.channels, 0);
  EXPECT_GT(log.unread, 5u);
}

TEST(NcclLog, MakesHostileTextPrintable) {
  const NcclLog log = read(info("Channel 00/0 : 0[0] -> 1[1] via P2P/\x1b[31mred") +
                           info("NCCL_NET set by environment to \x1b]0;title\x07"));
  for (const auto& [path, count] : log.connections) EXPECT_EQ(path.find('\x1b'), std::string::npos);
  EXPECT_EQ(log.environment.at("NCCL_NET").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace muster::cuda
