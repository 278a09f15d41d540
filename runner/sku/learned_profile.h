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
  size_t learned = 0;                 ///< so many of its expectations, the first ones
  std::vector<std::string> replaced;  ///< limits of the base that are gone, "metric labels: min 650 TFLOP/s"
  std::vector<std::string> unused;    ///< learned limits that are not in the profile, and why
};

/// `base` with the learned limits. What fails by the base fails by it: a bound of the base goes only where a
/// learned one on all the same figures is as strict, and all else stays as it is.
LearnedProfile learnedProfile(const Profile& base, const LearnInput& input, const Learned& learned,
                              const LearnOptions& options, const Provenance& provenance);

/// Whether this expectation bounds the figures on their bad side, so that a learned limit may take its place.
bool isBound(const Expectation& expectation, Direction direction);

/// "at least 697.8 TFLOP/s": what an expectation lets pass, once peaks are resolved; empty if it is no bound.
std::string boundText(const Expectation& expectation, const Profile& profile, Direction direction);

/// The figure at which it begins to fail; NaN if it is no bound (texts, peers, stability), or the peak is
/// unknown.
double boundFigure(const Expectation& expectation, const Profile& profile, Direction direction);
/// The same for the figures of `group`, whose peak is known.
double boundFor(const Expectation& expectation, const Profile& profile, const LearnGroup& group);
bool isStricter(double bound, double than, Direction direction);

}  // namespace muster
