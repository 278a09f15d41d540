// SPDX-License-Identifier: Apache-2.0
// Selection: which stages and devices of a plan `muster run --only` and `--device` chose.
#pragma once

#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/metrics/states.h"

namespace muster {

/// The name of the stage whose required skip keeps a partial run from being accepted, wherever its results
/// are counted.
inline constexpr const char* kSelectionStage = "muster:selection";

/// What of its plan a run was asked for. A partial run is never an acceptance, whatever it measured.
struct Selection {
  std::vector<std::string> stages;   ///< --only; empty: all that the devices leave
  std::vector<std::string> devices;  ///< --device, by inventory name; empty: all

  [[nodiscard]] bool partial() const { return !stages.empty() || !devices.empty(); }
  /// "partial run: only stage gemm on gpu5 (--only, --device)"; empty: the whole plan.
  [[nodiscard]] std::string text() const;
  /// Why it leaves out a stage: "left out by --only gemm"; empty: it does not.
  [[nodiscard]] std::string whyLeftOut(const std::string& stage, Scope scope) const;
};

Json toJson(const Selection& selection);
Result<Selection> selectionFromJson(const Json& json, const std::string& path);

}  // namespace muster
