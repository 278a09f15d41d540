// SPDX-License-Identifier: Apache-2.0
#include "runner/app/stage/frame_collector.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

namespace muster {
namespace {

constexpr const char* kDescribe = R"({"tests": [{"name": "run", "summary": "a test", "backends": ["host"],
  "scopes": ["device"], "params": [{"name": "size", "type": "int", "default": 1, "summary": "size"}],
  "metrics": [{"name": "rate", "unit": "FLOP/s", "direction": "higher", "labels": ["size", "dtype"],
               "summary": "rate", "peak": "flops.{dtype}"},
              {"name": "note", "unit": "text", "direction": "none", "summary": "a fact"}]}]})";

class FrameCollectorTest : public ::testing::Test {
 protected:
  FrameCollectorTest() {
    auto json = parseJson(kDescribe);
    auto spec = pluginSpecFromDescribe("toy", *json);
    EXPECT_TRUE(spec.ok()) << spec.error().text();
    plugin_ = std::move(spec).value();
    for (const char* id : {"a", "b"}) cases_.push_back({id, {{"size", 8}}, {}, {}});
  }
  FrameCollector collector(int repeats = 1) {
    std::vector<CaseRun> runs;
    for (int repeat = 0; repeat < repeats; ++repeat)
      for (const Case& c : cases_) runs.push_back({&c, repeat});
    return FrameCollector(plugin_, plugin_.tests.front(), runs, 1);
  }
  static Json begin(int index) { return {{"type", "case"}, {"case", index}, {"event", "begin"}}; }
  static Json end(int index, const char* state = "ok", const char* message = "") {
    return {{"type", "case"}, {"case", index}, {"event", "end"}, {"state", state}, {"message", message}};
  }
  static Json measured(const char* metric, const char* unit, Json samples) {
    return {{"type", "measurement"},
            {"case", 0},
            {"metric", metric},
            {"unit", unit},
            {"labels", {{"dtype", "bf16"}}},
            {"samples", std::move(samples)},
            {"time", 2.5}};
  }

  PluginSpec plugin_;
  std::vector<Case> cases_;
  RankSlot slot_{3, "gpu3", Json::object()};
};

TEST_F(FrameCollectorTest, GivesMeasurementsOfAGroupItsSize) {
  auto c = collector();
  c.setGroup(16, 2);
  c.take(slot_, begin(0));
  c.take(slot_, measured("rate", "FLOP/s", {1.0}));
  EXPECT_EQ(c.measurements.front().labels.count("ranks"), 0u) << "its test is no group's";
  plugin_.tests.front().metrics.front().labels.insert(plugin_.tests.front().metrics.front().labels.end(),
                                                      {"ranks", "nodes"});
  c.take(slot_, measured("rate", "FLOP/s", {1.0}));
  EXPECT_EQ(c.measurements.back().labels.at("ranks"), "16");
  EXPECT_EQ(c.measurements.back().labels.at("nodes"), "2");
}

TEST_F(FrameCollectorTest, MakesMeasurementsWithLabelsOfCaseDeviceAndPlugin) {
  auto c = collector();
  c.take(slot_, begin(0));
  c.take(slot_, measured("rate", "FLOP/s", {1.0, 2.0}));
  ASSERT_EQ(c.measurements.size(), 1u);
  const Measurement& m = c.measurements.front();
  EXPECT_EQ(m.metric, "toy.rate");
  EXPECT_EQ(m.labels, (Labels{{"device", "gpu3"}, {"dtype", "bf16"}, {"size", "8"}}));
  EXPECT_EQ(m.peak, "flops.bf16");
  EXPECT_EQ(m.samples, (std::vector<double>{1, 2}));
  EXPECT_EQ(m.caseId, "a");
  EXPECT_EQ(c.deviceTime, 2.5);
}

TEST_F(FrameCollectorTest, RefusesMoreLabelsThanARecordCanHold) {
  auto c = collector();
  c.take(slot_, begin(0));
  for (int i = 0; i < 50'000; ++i) {
    Json frame = measured("rate", "FLOP/s", {1.0});
    frame["labels"]["dtype"] = "bf" + std::to_string(i);
    c.take(slot_, frame);
    c.take(slot_, frame);
  }
  EXPECT_EQ(c.measurements.size(), 80'000u) << "repeats of known labels are no others";
}

TEST_F(FrameCollectorTest, KeepsHowSamplesFollowEachOtherInTime) {
  plugin_.tests.front().metrics.front().series = Series::kWindows;
  plugin_.tests.front().metrics.front().window = "window";
  cases_.front().params["window"] = 5.0;
  auto c = collector();
  c.take(slot_, begin(0));
  c.take(slot_, measured("rate", "FLOP/s", {1.0, 2.0}));
  ASSERT_EQ(c.measurements.size(), 1u);
  EXPECT_EQ(c.measurements.front().series, Series::kWindows);
  EXPECT_EQ(c.measurements.front().window, 5);
}

TEST_F(FrameCollectorTest, KeepsTheDigitsThatASampleCarries) {
  auto c = collector();
  c.take(slot_, begin(0));
  c.take(slot_, measured("rate", "FLOP/s", {7.123456789e14, "nan"}));
  ASSERT_EQ(c.measurements.size(), 1u);
  EXPECT_EQ(c.measurements[0].samples[0], 7.123457e14);
  EXPECT_NE(c.measurements[0].samples[1], c.measurements[0].samples[1]);
}

TEST_F(FrameCollectorTest, AnUndeclaredMetricMakesTheCaseAnError) {
  auto c = collector();
  c.take(slot_, begin(0));
  c.take(slot_, measured("speed", "FLOP/s", {1.0}));
  c.take(slot_, end(0));
  c.take(slot_, begin(1));
  c.take(slot_, end(1));
  const auto ends = c.caseEnds({slot_});
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].state, CaseEnd::State::kError);
  EXPECT_NE(ends[0].message.find("speed"), std::string::npos);
  EXPECT_EQ(ends[1].state, CaseEnd::State::kOk);
}

TEST_F(FrameCollectorTest, SaysWhichMetricMayHaveBeenMeant) {
  for (const auto& [name, hint] : {std::pair{"toy.rate", "expected the name without the plugin's"},
                                   {"rates", "did you mean \"rate\"?"}}) {
    auto c = collector();
    c.take(slot_, begin(0));
    c.take(slot_, measured(name, "FLOP/s", {1.0}));
    c.take(slot_, end(0));
    EXPECT_NE(c.caseEnds({slot_})[0].message.find(hint), std::string::npos) << c.caseEnds({slot_})[0].message;
  }
}

TEST_F(FrameCollectorTest, ATextForANumberAndANumberForATextAreErrors) {
  Json text = measured("rate", "FLOP/s", {});
  text.erase("samples");
  text["text"] = "fast";
  for (const auto& [frame, problem] :
       {std::pair{text, "rate came with a text, its unit is \"FLOP/s\"; expected samples"},
        {measured("note", "text", {1.0}), "note came with samples, its unit is \"text\"; expected a text"}}) {
    auto c = collector();
    c.take(slot_, begin(0));
    c.take(slot_, frame);
    c.take(slot_, end(0));
    const CaseEnd end = c.caseEnds({slot_})[0];
    EXPECT_EQ(end.state, CaseEnd::State::kError);
    EXPECT_NE(end.message.find(problem), std::string::npos) << end.message;
    EXPECT_TRUE(c.measurements.empty());
  }
}

TEST_F(FrameCollectorTest, AnArtifactThatWasReplacedIsListedOnce) {
  auto c = collector();
  for (const char* path : {"a/x", "a/x", "a/y"})
    c.take(slot_, {{"type", "artifact"}, {"name", "x"}, {"media_type", "text/plain"}, {"path", path}});
  EXPECT_EQ(c.artifacts.size(), 2u);
}

TEST_F(FrameCollectorTest, AWrongUnitMakesTheCaseAnError) {
  auto c = collector();
  c.take(slot_, begin(0));
  c.take(slot_, measured("rate", "B/s", {1.0}));
  c.take(slot_, end(0));
  EXPECT_TRUE(c.measurements.empty());
  EXPECT_EQ(c.caseEnds({slot_})[0].state, CaseEnd::State::kError);
}

TEST_F(FrameCollectorTest, ACaseThatNeverRanIsAnError) {
  auto c = collector();
  const auto ends = c.caseEnds({slot_});
  ASSERT_EQ(ends.size(), 2u);
  for (const CaseEnd& e : ends) EXPECT_EQ(e.state, CaseEnd::State::kError);
}

/// What was measured is judged by the load of the time in which it was, however the case came to its end.
TEST_F(FrameCollectorTest, KeepsWhenACaseRanHoweverItEnded) {
  using Ending = std::function<void(FrameCollector&)>;
  const std::vector<Ending> endings = {
      [&](FrameCollector& c) { c.take(slot_, end(0)); },
      [&](FrameCollector& c) { c.take(slot_, end(0, "error", "broken")); },
      [&](FrameCollector& c) { c.take(slot_, end(0, "cancelled")); },
      [&](FrameCollector& c) { c.failRun(slot_, 0, "the rank died"); },
      [&](FrameCollector& c) {
        c.take(slot_, end(0));
        c.overrule(slot_, 0, "node 1 was lost", "", CaseEnd::Cause::kGroup);
      },
      [&](FrameCollector& c) { c.overrule(slot_, 0, "node 1 was lost", "", CaseEnd::Cause::kGroup); },
      [](FrameCollector&) {}};
  for (size_t i = 0; i < endings.size(); ++i) {
    auto c = collector();
    c.take(slot_, begin(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    c.take(slot_, measured("rate", "FLOP/s", {1.0}));
    endings[i](c);
    const auto ends = c.caseEnds({slot_});
    EXPECT_GT(ends[0].begun, 0) << i;
    EXPECT_GT(ends[0].ended, ends[0].begun) << i;
    EXPECT_EQ(ends[1].begun, 0) << i;  // it never ran
  }
}

TEST_F(FrameCollectorTest, OneBadRepeatSpoilsTheCase) {
  auto c = collector(2);
  for (int i : {0, 1, 2, 3}) {
    c.take(slot_, begin(i));
    c.take(slot_, i == 2 ? end(i, "error", "it broke") : end(i));
  }
  const auto ends = c.caseEnds({slot_});
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].state, CaseEnd::State::kError);
  EXPECT_EQ(ends[0].message, "it broke");
  EXPECT_EQ(ends[1].state, CaseEnd::State::kOk);
}

TEST_F(FrameCollectorTest, AnErrorHidesASkip) {
  auto c = collector(2);
  c.take(slot_, begin(0));
  c.take(slot_, end(0, "unsupported", "no bf16"));
  c.take(slot_, begin(2));
  c.take(slot_, end(2, "error", "it broke"));
  EXPECT_EQ(c.caseEnds({slot_})[0].state, CaseEnd::State::kError);
}

TEST_F(FrameCollectorTest, HostileFramesChangeNothing) {
  auto c = collector();
  for (const Json& frame : {Json::parse(R"({"type":"case","case":-1,"event":"begin"})"),
                            Json::parse(R"({"type":"case","case":99,"event":"end","state":"ok"})"),
                            Json::parse(R"({"type":"case","case":"x"})"), Json::parse(R"({"type":7})"),
                            Json::parse(R"({"type":"measurement","metric":[1]})"), Json::parse(R"([])")})
    if (frame.is_object()) c.take(slot_, frame);
  EXPECT_TRUE(c.measurements.empty());
  EXPECT_EQ(c.openRun(3), -1);
  EXPECT_TRUE(c.endedRuns(3).empty());
}

TEST_F(FrameCollectorTest, FractionCountsAllRanks) {
  auto c = collector();
  EXPECT_DOUBLE_EQ(c.fraction(2), 0);
  c.take(slot_, begin(0));
  c.take(slot_, {{"type", "progress"}, {"fraction", 0.5}, {"text", "half"}});
  EXPECT_DOUBLE_EQ(c.fraction(2), 0.125);
  EXPECT_EQ(c.lastProgress(), "gpu3: half");
}

}  // namespace
}  // namespace muster
