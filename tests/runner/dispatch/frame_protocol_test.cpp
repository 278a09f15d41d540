// SPDX-License-Identifier: Apache-2.0
// Which frames are accepted, and in which order.
#include "runner/dispatch/frame_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::HasSubstr;

const char* const kBegin = R"({"type":"case","case":0,"event":"begin"})";
const char* const kEnd = R"({"type":"case","case":0,"event":"end","state":"ok","message":"","remedy":""})";
const char* const kDone = R"({"type":"done","cases":1})";

/// The error on the last of `frames`, all others being accepted; empty when that is accepted too.
std::string lastError(std::initializer_list<std::string> frames) {
  FrameProtocol protocol;
  std::string error;
  for (const std::string& frame : frames) {
    EXPECT_EQ(error, "");
    const Status status = protocol.accept(*parseJson(frame));
    error = status.ok() ? "" : status.error().text();
  }
  return error;
}

TEST(FrameProtocol, AcceptsAWholeSession) {
  EXPECT_EQ(
      lastError(
          {kBegin, R"({"type":"progress","case":0,"fraction":0.5,"text":"half"})",
           R"({"type":"progress","case":0,"fraction":null,"text":"unknown"})",
           R"({"type":"measurement","case":0,"metric":"m","unit":"s","labels":{"a":"b"},"samples":[1,"nan"],)"
           R"("time":0.5})",
           R"({"type":"measurement","case":0,"metric":"m","unit":"s","labels":{},"samples":[1,2],)"
           R"("time":0.5,"times":[0.25,0.5]})",
           R"({"type":"measurement","case":0,"metric":"m","unit":"text","labels":{},"text":"t","time":0})",
           R"({"type":"artifact","case":0,"name":"n","media_type":"m","path":"/p","bytes":4})",
           R"({"type":"log","level":"info","text":"t"})", kEnd, kDone}),
      "");
}

TEST(FrameProtocol, KeepsTheLastProgress) {
  FrameProtocol protocol;
  ASSERT_TRUE(
      protocol.accept(*parseJson(R"({"type":"progress","case":-1,"fraction":0.25,"text":"loading"})")).ok());
  EXPECT_EQ(protocol.lastProgress(), "loading, 25%");
}

/// A protocol in which these cases ended so.
FrameProtocol ended(std::initializer_list<Json> ends) {
  FrameProtocol protocol;
  int index = 0;
  for (Json end : ends) {
    Json begin = {{"type", "case"}, {"case", index}, {"event", "begin"}};
    end.update({{"type", "case"}, {"case", index++}, {"event", "end"}, {"remedy", ""}});
    EXPECT_TRUE(protocol.accept(begin).ok());
    EXPECT_TRUE(protocol.accept(end).ok());
  }
  return protocol;
}

TEST(FrameProtocol, KeepsTheFailuresThatAreNoOtherRanks) {
  const Json ok = {{"state", "ok"}, {"message", ""}};
  const Json hurt = {{"state", "error"}, {"message", "lost its group"}, {"peer", true}};
  const Json own = {{"state", "error"}, {"message", "out of memory"}};
  const Json lacking = {{"state", "unsupported"}, {"message", "no library"}};
  using Failures = std::map<int, std::string>;
  EXPECT_EQ(ended({ok, hurt}).caseFailures(), Failures());
  EXPECT_EQ(ended({hurt, own, ok, lacking}).caseFailures(),
            (Failures{{1, "out of memory"}, {3, "no library"}}));
  EXPECT_EQ(ended({{{"state", "error"}, {"message", ""}}}).caseFailures().at(0), "no reason was given");
  EXPECT_THAT(
      lastError({kBegin, R"({"type":"case","case":0,"event":"end","state":"error","message":"","remedy":"",)"
                         R"("peer":1})"}),
      HasSubstr("peer is not a flag"));
}

TEST(FrameProtocol, RefusesFramesOutOfOrder) {
  EXPECT_THAT(lastError({kEnd}), HasSubstr("case 0 ended, but -1 was open"));
  EXPECT_THAT(lastError({kBegin, kBegin}), HasSubstr("case 0 began inside case 0"));
  EXPECT_THAT(lastError({kBegin, kEnd, kBegin}), HasSubstr("case 0 began again"));
  EXPECT_THAT(lastError({kBegin, kDone}), HasSubstr("`done` inside case 0"));
  EXPECT_THAT(lastError({kDone}), HasSubstr("after 1 cases, but 0 ended"));
  EXPECT_THAT(lastError({kBegin, kEnd, kDone, kDone}), HasSubstr("`done` twice"));
  EXPECT_THAT(lastError({kBegin, kEnd, kDone, kBegin}), HasSubstr("a case frame came after `done`"));
}

TEST(FrameProtocol, RefusesMissingAndMistypedFields) {
  EXPECT_THAT(lastError({"[]"}), HasSubstr("not an object with a \"type\""));
  EXPECT_THAT(lastError({R"({"type":5})"}), HasSubstr("not an object with a \"type\""));
  EXPECT_THAT(lastError({R"({"type":"log","level":"info"})"}), HasSubstr("log frame has no text \"text\""));
  EXPECT_THAT(lastError({R"({"type":"case","event":"begin","case":"0"})"}),
              HasSubstr("no whole number \"case\""));
  EXPECT_THAT(lastError({R"({"type":"case","event":"begin","case":-5})"}),
              HasSubstr("no whole number \"case\""));
  EXPECT_THAT(lastError({R"({"type":"case","event":"middle","case":0})"}),
              HasSubstr("neither begin nor end"));
  EXPECT_THAT(lastError({R"({"type":"done"})"}), HasSubstr("no whole number \"cases\""));
  EXPECT_THAT(
      lastError(
          {kBegin, R"({"type":"case","case":0,"event":"end","state":"fine","message":"","remedy":""})"}),
      HasSubstr("unknown state \"fine\""));
}

TEST(FrameProtocol, RefusesMeasurementsThatAreNone) {
  const std::string head = R"({"type":"measurement","case":0,"metric":"m","unit":"s","time":0,)";
  EXPECT_THAT(lastError({head + R"("labels":{},"samples":[1]})"}), HasSubstr("while no case was open"));
  EXPECT_THAT(lastError({kBegin, head + R"("samples":[1]})"}), HasSubstr("no labels"));
  EXPECT_THAT(lastError({kBegin, head + R"("labels":{"a":1},"samples":[1]})"}), HasSubstr("label \"a\""));
  EXPECT_THAT(lastError({kBegin, head + R"("labels":{},"samples":[null]})"}),
              HasSubstr("not a list of numbers"));
  EXPECT_THAT(lastError({kBegin, head + R"("labels":{},"samples":1})"}), HasSubstr("not a list of numbers"));
  for (const char* times : {"[1]", "[1,2,3]", "[1,null]", "1"})
    EXPECT_THAT(lastError({kBegin, head + R"("labels":{},"samples":[1,2],"times":)" + times + "}"}),
                HasSubstr("as many numbers as it has samples"))
        << times;
  EXPECT_THAT(lastError({kBegin, head + R"("labels":{}})"}), HasSubstr("either samples or a text"));
  EXPECT_THAT(lastError({kBegin, head + R"("labels":{},"samples":[1],"text":"t"})"}),
              HasSubstr("either samples or a text"));
}

}  // namespace
}  // namespace muster
