// SPDX-License-Identifier: Apache-2.0
// From learned limits to a profile: what it takes over from the one it replaces, and what each limit says of
// its origin.
#pragma once

#include "runner/sku/learn.h"
#include "runner/sku/profile.h"

namespace muster {

/// Where the figures came from, for `source` and the facts of the profile.
struct Provenance {
  std::string date;      ///< of the last record, "2026-11-21"
  std::string plan;      ///< name of the plan
  std::string software;  ///< "driver 580.95.05, CUDA 13.0, NCCL 2.28"
  std::string records;   ///< SHA-256 of the record; of several, over their digests
  std::string scenario;  ///< not empty: the records are simulated
  size_t figures = 0;    ///< judged of one node
};

struct LearnedProfile {
  Profile profile;
  std::vector<std::string> replaced;  ///< limits of the base that are gone, "metric labels: min 650 TFLOP/s"
  std::vector<std::string> looser;    ///< of those, where the learned limit lets more pass, in words
};

/// `base` with the learned limits in place of its own ones on the same figures. Expectations that learning
/// says nothing of (links, modes, health, figures that were not measured) stay as they are.
LearnedProfile learnedProfile(const Profile& base, const LearnInput& input, const Learned& learned,
                              const LearnOptions& options, const Provenance& provenance);

/// The largest tolerance that may be learned of a group: what the profile that is shipped allows, where it
/// has a baseline for it.
double widestTolerance(const LearnGroup& group, const Profile& base);

/// Whether this expectation bounds the figures on their bad side, so that a learned limit may take its place.
bool isBound(const Expectation& expectation, Direction direction);

/// "at least 697.8 TFLOP/s": what an expectation lets pass, once peaks are resolved; empty if it is no bound.
std::string boundText(const Expectation& expectation, const Profile& profile, Direction direction);

/// The figure at which it begins to fail; NaN if it is no bound (texts, peers, stability), or the peak is
/// unknown.
double boundFigure(const Expectation& expectation, const Profile& profile, Direction direction);

}  // namespace muster
