// SPDX-License-Identifier: Apache-2.0
// `--json`: the run as a stream of events, one JSON object per line, for programs.
#pragma once

#include <memory>

#include "runner/app/view/view.h"

namespace muster {

/// Events: run_started, stage_started, stage_progress, stage_ended, note, run_ended; each has `event` and
/// `time`.
std::unique_ptr<RunView> makeJsonView();

}  // namespace muster
