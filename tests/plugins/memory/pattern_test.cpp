// SPDX-License-Identifier: Apache-2.0
// memory.pattern over the C border: healthy memory, and a flipped bit that it must name.
#include <gtest/gtest.h>

#include <optional>

#include "plugins/memory/params.h"
#include "plugins/memory/tests.h"
#include "tests/kernels/virtual_device.h"
#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

class MemoryPattern : public ::testing::Test {
 protected:
  CaseResult onHost(const Json& params) {
    return plugin_.run(host_, "pattern", params, contextFor("host", "cpu0"));
  }
  CaseResult onSim(const std::string& faults, const Json& params) {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, "pattern", params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"memory"};
  RecordingHost host_;
};

TEST_F(MemoryPattern, FindsNothingInThisMemory) {
  const Json params = {{"bytes", "1 MiB"},
                       {"passes", 2},
                       {"patterns",
                        {"zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one",
                         "walking_zero", "address", "inverse_address", "random"}}};
  ASSERT_EQ(onHost(params).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "pattern");
  EXPECT_EQ(host_.value("pattern_errors"), 0);
  EXPECT_EQ(host_.value("pattern_bytes"), 1 << 20);
  EXPECT_EQ(host_.value("pattern_sweeps"), 18);
  EXPECT_TRUE(host_.told("pattern_first_error").empty());
}

TEST_F(MemoryPattern, NamesDeviceOffsetAndBit) {
  ASSERT_EQ(onSim(corruption("pattern", 1, 4096, 17), {{"bytes", "1 GiB"}, {"patterns", {"zeros"}}}).ran,
            MUSTER_OK)
      << host_.error;
  plugin_.expectDeclared(host_, "pattern");
  EXPECT_GT(host_.value("pattern_errors"), 0);
  const std::string text = host_.told("pattern_first_error").at(0).text;
  EXPECT_NE(text.find("gpu0: pattern zeros, pass 1"), std::string::npos) << text;
  EXPECT_NE(text.find("offset 0x1000 "), std::string::npos) << text;
  EXPECT_NE(text.find("expected 0x0000000000000000, found 0x0000000000020000, flipped bits 17"),
            std::string::npos)
      << text;
  EXPECT_EQ(host_.logs, std::vector<std::string>{text});
}

TEST_F(MemoryPattern, CountsOffsetsOverAllParts) {
  ASSERT_EQ(onSim(corruption("pattern", 3, 4096, 17), {{"bytes", "4 GiB"}, {"patterns", {"address"}}}).ran,
            MUSTER_OK)
      << host_.error;
  const std::string text = host_.told("pattern_first_error").at(0).text;
  EXPECT_NE(text.find("offset 0x80001000 "), std::string::npos) << text;  // the third GiB
}

TEST_F(MemoryPattern, TestsAShareOfTheFreeMemory) {
  ASSERT_EQ(onSim("", {{"fraction", "50%"}, {"patterns", {"ones"}}}).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(host_.value("pattern_bytes"), 40e9, 1e9);
}

TEST_F(MemoryPattern, FailsWhereTheMemoryIsNotThere) {
  EXPECT_EQ(onHost({{"bytes", "16 TiB"}}).ran, MUSTER_ERROR);
  EXPECT_NE(host_.error.find("out of memory"), std::string::npos) << host_.error;
  EXPECT_TRUE(host_.measurements.empty());
}

TEST_F(MemoryPattern, LogsABoundedNumberOfErrors) {
  ASSERT_EQ(onSim(corruption("pattern", 1, 4096, 17), {{"bytes", "1 GiB"}, {"passes", 50}}).ran, MUSTER_OK);
  EXPECT_EQ(host_.logs.size(), 16u);
  EXPECT_EQ(host_.value("pattern_errors"), 50 * 7);
}

/// Memory with a dead address line: buffers of 1 GiB lie on two cells of 1 GiB in turn. A cell holds the part
/// of a pattern that was written to it last.
class AliasingDevice : public VirtualDevice {
 public:
  std::vector<PatternPart> written;  ///< in order

  Result<uint64_t> freeBytes() override { return uint64_t{64} << 30; }
  Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes) override {
    return std::unique_ptr<Buffer>(new Cell(bytes, buffers_++ % 2));
  }
  Status fillPattern(Buffer& buffer, const PatternPart& part) override {
    cells_.at(static_cast<Cell&>(buffer).number) = part;
    written.push_back(part);
    return work();
  }
  Result<Mismatch> checkPattern(const Buffer& buffer, const PatternPart& part) override {
    const PatternPart& held = *cells_.at(static_cast<const Cell&>(buffer).number);
    Mismatch found;
    for (uint64_t word = 0; word < 128; ++word)
      compareWord(part.word(word), held.word(word), word * 8, found);
    return found;
  }

 private:
  struct Cell : Buffer {
    Cell(uint64_t size, size_t cell) : number(cell), size_(size) {}
    [[nodiscard]] uint64_t bytes() const override { return size_; }
    size_t number;

   private:
    uint64_t size_;
  };
  size_t buffers_ = 0;
  std::array<std::optional<PatternPart>, 2> cells_;
};

class MemoryPatternOfAliases : public ::testing::Test {
 protected:
  void run(const std::vector<std::string>& patterns, int passes = 1) {
    const sdk::Host host(host_.table());
    BackendOptions options;
    options.folder = (buildDir() / "kernels/host").string();
    auto backend = loadBackend("host", options);
    ASSERT_TRUE(backend.ok()) << backend.error().text();
    const Json params = {
        {"bytes", uint64_t{4} << 30}, {"fraction", 0}, {"patterns", patterns}, {"passes", passes}};
    const Status ran = memory::runPattern({host, **backend, device_, {}, {}}, params, 5);
    ASSERT_TRUE(ran.ok()) << ran.error().text();
  }
  AliasingDevice device_;
  RecordingHost host_;
};

TEST_F(MemoryPatternOfAliases, FindsAddressesThatAreTheSameCellAGibibyteApart) {
  for (const char* pattern : {"address", "inverse_address", "random"}) {
    host_.measurements.clear();
    run({pattern});
    EXPECT_GT(host_.value("pattern_errors"), 0) << pattern;
  }
}

TEST_F(MemoryPatternOfAliases, CannotFindThemByPatternsThatAreTheSameEverywhere) {
  run({"zeros", "checkerboard", "walking_one"});
  EXPECT_EQ(host_.value("pattern_errors"), 0);
}

TEST_F(MemoryPatternOfAliases, MovesTheWalkingBitEachPass) {
  run({"walking_one", "walking_zero"}, 64);
  uint64_t ones = 0, zeros = 0;
  for (const PatternPart& part : device_.written) {
    if (part.pattern == static_cast<uint64_t>(Pattern::kWalkingOne)) ones |= part.word(17);
    if (part.pattern == static_cast<uint64_t>(Pattern::kWalkingZero)) zeros |= ~part.word(17);
  }
  EXPECT_EQ(ones, ~uint64_t{0}) << "each bit of a word was set alone";
  EXPECT_EQ(zeros, ~uint64_t{0});
}

TEST_F(MemoryPattern, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 1;
  EXPECT_EQ(onHost({{"bytes", "1 MiB"}}).ran, MUSTER_CANCELLED);
  EXPECT_TRUE(host_.measurements.empty());
}

}  // namespace
}  // namespace muster::testing
