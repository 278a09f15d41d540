// SPDX-License-Identifier: Apache-2.0
// What a person or a program sees while a run goes on: a live terminal view, plain lines, or JSON events.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

/// A stage that is about to run.
struct StageStart {
  size_t index = 0;  ///< from 0
  size_t count = 0;
  std::string name;
  std::string what;  ///< "compute.gemm, 2 cases on 8 devices"
  double timeout = 0;
};

/// How far a running stage is.
struct StageProgress {
  double elapsed = 0;    ///< seconds
  double fraction = -1;  ///< 0..1 over all ranks and cases; negative while unknown
  std::string text;      ///< last progress line of any rank, with its device
};

/// Receives the events of a run. Called from one thread.
class RunView {
 public:
  virtual ~RunView() = default;
  virtual void runStarted(const Record& record, const std::filesystem::path& folder) = 0;
  virtual void stageStarted(const StageStart& stage) = 0;
  virtual void stageProgress(const StageProgress& progress) = 0;
  virtual void stageEnded(const StageRecord& stage) = 0;
  virtual void note(const std::string& text) = 0;  ///< one line that a person should see
  virtual void runEnded(const Record& record, const std::filesystem::path& folder) = 0;
};

enum class ViewKind { kAuto, kPlain, kJson };

/// The view for standard output: live on a terminal, plain lines elsewhere, one JSON object per line with
/// kJson. `pluginFolders` are those of the command line.
std::unique_ptr<RunView> makeView(ViewKind kind, const std::vector<std::filesystem::path>& pluginFolders);

/// The line that LiveView redraws in place: a bar and how far the stage is, never wider than the terminal.
std::string liveLine(double fraction, const std::string& text, int columns, bool utf8);

/// One line about an ended stage: "fail  gemm  8 devices  12.3s  1 fail, 7 pass".
std::string stageLine(const StageRecord& stage);

}  // namespace muster
