// SPDX-License-Identifier: Apache-2.0
// The tables of perftest: read strictly, whatever else is printed.
#include "kernels/host/rdma/perftest_output.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr const char* kRule =
    "---------------------------------------------------------------------------------------\n";
constexpr const char* kBandwidthHead =
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n";
constexpr const char* kLatencyHead =
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% "
    "percentile[usec]   99.9% percentile[usec] \n";

std::string table(const std::string& head, const std::string& rows) {
  return std::string(kRule) +
         "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n" +
         kRule + head + rows + kRule;
}

Result<RdmaFigure> bandwidth(const std::string& rows) {
  return parsePerftest(RdmaMethod::kWriteBandwidth, table(kBandwidthHead, rows), 1048576);
}

Result<RdmaFigure> latency(const std::string& rows) {
  return parsePerftest(RdmaMethod::kSendLatency, table(kLatencyHead, rows), 2);
}

TEST(PerftestOutput, GivesTheAverageBandwidth) {
  const auto figure = bandwidth(" 1048576    93000            0.00               392.10\t\t   0.046742\n");
  ASSERT_TRUE(figure.ok()) << figure.error().text();
  EXPECT_DOUBLE_EQ(figure->bandwidth, 392.10e9 / 8);
}

TEST(PerftestOutput, GivesTypicalAnd99thPercentileLatency) {
  const auto figure = latency(
      " 2       10000          0.87           4.61         0.90     \t       0.91        \t0.05   \t\t0.98   "
      " \t\t2.90\n");
  ASSERT_TRUE(figure.ok()) << figure.error().text();
  EXPECT_DOUBLE_EQ(figure->latency, 0.90e-6);
  EXPECT_DOUBLE_EQ(figure->latencyP99, 0.98e-6);
}

/// Rows that no healthy perftest prints, and a word of the error for each.
struct BadRow {
  const char* row;
  const char* word;
};

class BadBandwidth : public ::testing::TestWithParam<BadRow> {};

TEST_P(BadBandwidth, IsAnErrorThatQuotesIt) {
  const auto figure = bandwidth(GetParam().row);
  ASSERT_FALSE(figure.ok());
  EXPECT_EQ(figure.error().code, ErrorCode::kProtocol);
  EXPECT_NE(figure.error().message.find(GetParam().word), std::string::npos) << figure.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    PerftestOutput, BadBandwidth,
    ::testing::Values(BadRow{"", "0 rows"}, BadRow{" 1048576 93000 0.00 nan 0.04\n", "nan"},
                      BadRow{" 1048576 93000 0.00 inf 0.04\n", "inf"},
                      BadRow{" 1048576 93000 0.00 -3 0.04\n", "-3"},
                      BadRow{" 1048576 93000 0.00 0.00 0.00\n", "moved nothing"},
                      BadRow{" 1048576 93000 0.00 1e308 0.04\n", "1e+308"},
                      BadRow{" 1048576 0 0.00 392.1 0.04\n", "0 iterations"},
                      BadRow{" 65536 93000 0.00 392.1 0.04\n", "65536"},
                      BadRow{" 1048576 93000 0.00 392.1\n", "4 columns"},
                      BadRow{" 1048576 93000 0.00 392.1 0.04 7\n", "6 columns"},
                      BadRow{" 1048576 93000 0.00 392,1 0.04\n", "392,1"},
                      BadRow{" 1048576 9 0.00 392.1 0.04\n 1048576 9 0.00 392.1 0.04\n", "2 rows"},
                      BadRow{" mlx5: warning\n", "mlx5:"}));

TEST(PerftestOutput, RefusesAHeadInOtherUnits) {
  const auto figure = parsePerftest(
      RdmaMethod::kWriteBandwidth,
      table(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n",
            " 1048576    93000            0.00               46700.1\t\t   0.046742\n"),
      1048576);
  ASSERT_FALSE(figure.ok());
  EXPECT_NE(figure.error().message.find("MB/sec"), std::string::npos);
}

TEST(PerftestOutput, RefusesNoTableAndTwoTables) {
  EXPECT_FALSE(parsePerftest(RdmaMethod::kWriteBandwidth, "", 1048576).ok());
  const std::string once = table(kBandwidthHead, " 1048576 93000 0.00 392.1 0.04\n");
  EXPECT_TRUE(parsePerftest(RdmaMethod::kWriteBandwidth, once, 1048576).ok());
  EXPECT_FALSE(parsePerftest(RdmaMethod::kWriteBandwidth, once + once, 1048576).ok());
}

TEST(PerftestOutput, RefusesLatenciesThatContradictEachOther) {
  EXPECT_FALSE(latency(" 2 1000 0.00 4.61 0.90 0.91 0.05 0.98 2.90\n").ok()) << "no message takes no time";
  EXPECT_FALSE(latency(" 2 1000 0.95 4.61 0.90 0.91 0.05 0.98 2.90\n").ok()) << "median below the minimum";
  EXPECT_FALSE(latency(" 2 1000 0.80 0.85 0.90 0.91 0.05 0.98 2.90\n").ok()) << "maximum below the median";
}

TEST(PerftestOutput, LastWordsAreShortPrintableAndTheLast) {
  EXPECT_EQ(lastWords(""), "it printed nothing");
  EXPECT_EQ(lastWords("first\nsecond\n------\n\n"), "it printed: first | second");
  const std::string hostile = lastWords("\x1b[2J\xff" + std::string(100'000, 'x'));
  EXPECT_LT(hostile.size(), 1000u);
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace muster
