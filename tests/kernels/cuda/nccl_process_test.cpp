// SPDX-License-Identifier: Apache-2.0
// NCCL's environment and log with the real library, which makes unique ids without a GPU.
#include "kernels/cuda/nccl/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

namespace muster::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// NCCL reads its environment once a process: one test says it all, in order.
TEST(NcclProcess, PutsSettingsInPlaceAndReadsWhatNcclSaysOfThem) {
  NcclProcess& process = NcclProcess::get();
  const Settings settings = {{"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_NO_SUCH_THING", "1"}};
  EXPECT_FALSE(process.configure({{"LD_PRELOAD", "x"}}).ok());
  ASSERT_TRUE(process.configure(settings).ok());
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess) << ncclGetLastError(nullptr);

  auto log = process.log();
  ASSERT_TRUE(log.ok());
  EXPECT_GT(log->lines, 0u);
  const SettingsProof proof = proveSettings(settings, *log);
  EXPECT_THAT(proof.taken, ElementsAre("NCCL_SOCKET_IFNAME=lo"));
  EXPECT_THAT(proof.unsaid, ElementsAre("NCCL_NO_SUCH_THING"));
  const uint64_t lines = log->lines;

  // What was read is kept, though its memory was given back; more is read on.
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  log = process.log();
  ASSERT_TRUE(log.ok());
  EXPECT_GE(log->lines, lines);
  EXPECT_EQ(log->environment.at("NCCL_SOCKET_IFNAME"), "lo");

  EXPECT_TRUE(process.configure(settings).ok());
  const Status other = process.configure({{"NCCL_ALGO", "Ring"}});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kUsage);
  EXPECT_THAT(other.error().message, HasSubstr("once a process"));
}

}  // namespace
}  // namespace muster::cuda
