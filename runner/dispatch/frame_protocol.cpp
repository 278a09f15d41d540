// SPDX-License-Identifier: Apache-2.0
// Checks the type, fields and order of each frame.
#include "runner/dispatch/frame_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runner/core/text.h"

namespace muster {
namespace {

Error broken(const std::string& what) {
  return {ErrorCode::kProtocol, what, ""};
}

template <size_t N>
bool isOneOf(const std::string& text, const std::array<std::string_view, N>& allowed) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

/// A number, or one of the texts that stand for what JSON has no number for.
bool isFigure(const Json& value) {
  constexpr std::array<std::string_view, 3> kNonFinite{"nan", "inf", "-inf"};
  return value.is_number() || (value.is_string() && isOneOf(value.get_ref<const std::string&>(), kNonFinite));
}

Status texts(const Json& frame, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = frame.find(key);
    if (found == frame.end() || !found->is_string())
      return broken(fmt::format("its {} frame has no text \"{}\"", frame["type"].get<std::string>(), key));
  }
  return {};
}

Result<int> integer(const Json& frame, const char* key) {
  const auto found = frame.find(key);
  const bool fits = found != frame.end() && found->is_number_integer() && found->get<int64_t>() >= -1 &&
                    found->get<int64_t>() <= 1'000'000'000;
  if (!fits)
    return broken(
        fmt::format("its {} frame has no whole number \"{}\"", frame["type"].get<std::string>(), key));
  return found->get<int>();
}

}  // namespace

Status FrameProtocol::accept(const Json& frame) {
  if (!frame.is_object() || !frame.contains("type") || !frame["type"].is_string())
    return broken("a frame is not an object with a \"type\"");
  const std::string type = frame["type"];
  if (done_)
    return broken(type == "done" ? "it sent `done` twice"
                                 : fmt::format("a {} frame came after `done`", type));
  if (type == "case") return acceptCase(frame);
  if (type == "progress") return acceptProgress(frame);
  if (type == "measurement") return acceptMeasurement(frame);
  if (type == "artifact") return acceptArtifact(frame);
  if (type == "done") return acceptDone(frame);
  if (type == "log") return texts(frame, {"level", "text"});
  if (type == "fatal") {
    MUSTER_CHECK_OK(texts(frame, {"message"}));
    fatal_ = reasonText(frame["message"].get_ref<const std::string&>());
    return {};
  }
  if (type == "describe") {
    if (std::exchange(described_, true)) return broken("it described itself twice");
    return texts(frame, {"name", "version"});
  }
  return broken("a frame has the unknown type \"" + printable(type, 40) + "\"");
}

Status FrameProtocol::acceptCase(const Json& frame) {
  constexpr std::array<std::string_view, 4> kStates{"ok", "error", "unsupported", "cancelled"};
  MUSTER_CHECK_OK(texts(frame, {"event"}));
  MUSTER_TRY(const int index, integer(frame, "case"));
  if (frame["event"] == "begin") {
    if (openCase_ >= 0) return broken(fmt::format("case {} began inside case {}", index, openCase_));
    if (index < 0 || endedCases_.count(index) != 0) return broken(fmt::format("case {} began again", index));
    openCase_ = index;
    return {};
  }
  if (frame["event"] != "end") return broken("a case frame is neither begin nor end");
  if (index < 0 || index != openCase_)
    return broken(fmt::format("case {} ended, but {} was open", index, openCase_));
  MUSTER_CHECK_OK(texts(frame, {"state", "message", "remedy"}));
  if (!isOneOf(frame["state"].get_ref<const std::string&>(), kStates))
    return broken("a case ended in the unknown state \"" + printable(frame["state"].get<std::string>(), 40) +
                  "\"");
  const auto peer = frame.find("peer");
  if (peer != frame.end() && !peer->is_boolean()) return broken("a case frame's peer is not a flag");
  if (frame["state"] == "cancelled") ++cancelled_;
  const bool own =
      frame["state"] == "unsupported" || (frame["state"] == "error" && !frame.value("peer", false));
  if (own && caseFailures_.size() < kMostCaseFailures) {
    std::string& why = caseFailures_[index];
    why = reasonText(frame["message"].get_ref<const std::string&>());
    if (why.empty()) why = "no reason was given";
  }
  endedCases_.insert(index);
  openCase_ = -1;
  return {};
}

Status FrameProtocol::acceptDone(const Json& frame) {
  MUSTER_TRY(const int count, integer(frame, "cases"));
  if (openCase_ >= 0) return broken(fmt::format("it sent `done` inside case {}", openCase_));
  if (count != casesEnded())
    return broken(fmt::format("it sent `done` after {} cases, but {} ended", count, casesEnded()));
  if (frame.contains("virtual_end") && !frame["virtual_end"].is_number())
    return broken("virtual_end is not a number");
  done_ = true;
  return {};
}

Status FrameProtocol::acceptProgress(const Json& frame) {
  MUSTER_CHECK_OK(texts(frame, {"text"}));
  const auto share = frame.find("fraction");
  if (share != frame.end() && !share->is_null() && !share->is_number())
    return broken("a progress is not a number");
  MUSTER_TRY(const int index, integer(frame, "case"));
  if (index != openCase_)
    return broken(fmt::format("progress of case {}, but {} was open", index, openCase_));
  lastProgress_ = frame["text"];
  if (share != frame.end() && share->is_number())
    lastProgress_ += fmt::format("{}{:.0f}%", lastProgress_.empty() ? "" : ", ", share->get<double>() * 100);
  return {};
}

Status FrameProtocol::inOpenCase(const Json& frame) const {
  MUSTER_TRY(const int index, integer(frame, "case"));
  if (index < 0 || index != openCase_)
    return broken(fmt::format("a {} frame of case {} came while {} was open",
                              frame["type"].get<std::string>(), index,
                              openCase_ < 0 ? "no case" : fmt::format("case {}", openCase_)));
  return {};
}

Status FrameProtocol::acceptMeasurement(const Json& frame) {
  MUSTER_CHECK_OK(inOpenCase(frame));
  MUSTER_CHECK_OK(texts(frame, {"metric", "unit"}));
  const auto labels = frame.find("labels");
  if (labels == frame.end() || !labels->is_object()) return broken("a measurement has no labels object");
  for (const auto& [key, value] : labels->items())
    if (!value.is_string())
      return broken("label \"" + printable(key, 40) + "\" of a measurement is not a text");
  if (!frame.contains("time") || !isFigure(frame["time"])) return broken("a measurement has no time");
  const auto text = frame.find("text");
  const auto samples = frame.find("samples");
  if ((text == frame.end()) == (samples == frame.end()))
    return broken("a measurement needs either samples or a text");
  if (text != frame.end())
    return text->is_string() ? Status() : Status(broken("a measurement's text is not a text"));
  const auto figures = [](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), isFigure);
  };
  if (!figures(*samples)) return broken("a measurement's samples are not a list of numbers");
  const auto times = frame.find("times");
  if (times == frame.end() || (figures(*times) && times->size() == samples->size())) return {};
  return broken("a measurement's times are not a list of as many numbers as it has samples");
}

Status FrameProtocol::acceptArtifact(const Json& frame) {
  MUSTER_CHECK_OK(inOpenCase(frame));
  MUSTER_CHECK_OK(texts(frame, {"name", "media_type", "path"}));
  const auto bytes = frame.find("bytes");
  return bytes != frame.end() && bytes->is_number_unsigned() ? Status()
                                                             : Status(broken("an artifact has no size"));
}

}  // namespace muster
