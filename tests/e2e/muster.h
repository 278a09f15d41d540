// SPDX-License-Identifier: Apache-2.0
// Runs the installed `muster` as a user would, and reads what it left.
#pragma once

#include <string>
#include <vector>

#include "runner/record/record.h"
#include "tests/support/process.h"

namespace muster::testing {

/// `muster ARGS` from the tree under test.
ProcessResult runMuster(std::vector<std::string> arguments, const ProcessOptions& options = {});

/// A ready plan or scenario of the tree under test.
std::string plan(const std::string& name);
std::string scenario(const std::string& name);
/// Copies what the shipped plans (".") or profiles ("skus") include into `folder`, for an edited copy of one.
void copyIncluded(const std::string& of, const std::filesystem::path& folder);

/// An edited copy of a shipped scenario: writes `text` to `file`, and beside it what it includes.
std::filesystem::path writeScenario(const std::filesystem::path& file, const std::string& text);

/// The record in a run folder; the test fails when there is none.
Record recordIn(const std::filesystem::path& folder);

/// The stage of this name; the test fails when there is none.
const StageRecord& stageOf(const Record& record, const std::string& name);

/// The verdicts of one outcome over all stages.
std::vector<Verdict> verdictsOf(const Record& record, Outcome outcome);

/// A plan with one stage of a fake plugin of tests/fakes: `fake-crash` is plugin and library name alike.
std::string fakePlan(const std::string& plugin, const std::string& timeout = "10s",
                     const std::string& extra = "");

/// Arguments that make the fakes known: --plugins DIR.
std::vector<std::string> withFakes();

/// Joins argument lists.
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b);

}  // namespace muster::testing
