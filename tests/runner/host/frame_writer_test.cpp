// SPDX-License-Identifier: Apache-2.0
// Frames from many threads stay whole lines, inside the case that is open, and come from one process only.
#include "runner/host/frame_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class FrameWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    read_ = Fd(fds[0]);
    write_ = Fd(fds[1]);
    frames_ = std::make_unique<FrameWriter>(write_.get());
  }
  std::vector<Json> written() {
    write_.reset();
    std::string all;
    char buffer[65536];
    for (ssize_t n = 0; (n = read(read_.get(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<size_t>(n));
    std::vector<Json> frames;
    for (const std::string& line : split(trim(all), '\n'))
      if (!line.empty()) frames.push_back(*parseJson(line));
    return frames;
  }
  Fd read_, write_;
  std::unique_ptr<FrameWriter> frames_;
};

TEST_F(FrameWriterTest, KeepsFramesWholeAcrossThreads) {
  std::vector<std::thread> writers;
  ASSERT_TRUE(frames_->beginCase(3).ok());
  writers.reserve(4);
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(frames_->writeInCase({{"type", "log"}, {"thread", t}}).ok());
    });
  for (std::thread& writer : writers) writer.join();
  ASSERT_TRUE(frames_->endCase({{"state", "ok"}}).ok());
  const std::vector<Json> frames = written();
  EXPECT_EQ(frames.size(), 402U);
  EXPECT_EQ(frames[1]["case"], 3);
}

TEST_F(FrameWriterTest, WritesNothingIntoAFileThatTookItsDescriptor) {
  int others[2];
  ASSERT_EQ(pipe(others), 0);
  const Fd in(others[0]), out(others[1]);
  ASSERT_TRUE(frames_->write({{"type", "log"}}).ok());
  const Fd kept(dup(write_.get()));
  ASSERT_EQ(dup2(out.get(), write_.get()), write_.get());
  EXPECT_THAT(frames_->write({{"type", "log"}}).error().text(),
              HasSubstr("its descriptor was closed and is another file now"));
  EXPECT_EQ(fcntl(in.get(), F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  EXPECT_EQ(read(in.get(), &byte, 1), -1);
  ASSERT_EQ(dup2(kept.get(), write_.get()), write_.get());
  EXPECT_TRUE(frames_->write({{"type", "log"}}).ok());
}

TEST_F(FrameWriterTest, RefusesAMeasurementOutsideOfACase) {
  EXPECT_FALSE(frames_->writeInCase({{"type", "measurement"}}).ok());
  ASSERT_TRUE(frames_->beginCase(0).ok());
  ASSERT_TRUE(frames_->endCase({{"state", "ok"}}).ok());
  EXPECT_FALSE(frames_->writeInCase({{"type", "measurement"}}).ok());
  EXPECT_TRUE(frames_->writeAnywhere({{"type", "progress"}}).ok());
  const std::vector<Json> frames = written();
  EXPECT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames.back()["case"], -1);
}

TEST_F(FrameWriterTest, BoundsTheLength) {
  const Status status = frames_->write({{"type", "log"}, {"text", std::string(kMaxFrameBytes, 'x')}});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("at most 1048576 are taken"));
  EXPECT_TRUE(written().empty());
}

TEST_F(FrameWriterTest, RefusesAForkedChild) {
  const pid_t child = fork();
  if (child == 0) _exit(frames_->write({{"type", "done"}}).ok() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(written().empty());
}

}  // namespace
}  // namespace muster
