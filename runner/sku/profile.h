// SPDX-License-Identifier: Apache-2.0
// SKU profiles: the facts and expectations of one GPU model (or of a host CPU), and how a device is matched
// to one.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/metrics/catalog.h"
#include "runner/metrics/expectation.h"
#include "runner/metrics/expectation_reader.h"

namespace muster {

struct Complaint;

/// What a profile says of the devices it is for. Empty fields match anything; a profile needs at least one.
struct SkuMatch {
  std::vector<std::string> pciIds;    ///< "10de:2330"
  std::vector<std::string> names;     ///< exact device names, "NVIDIA H100 80GB HBM3"
  double memoryMin = 0;               ///< bytes; the memory class
  double memoryMax = 0;               ///< bytes; 0: no bound
  std::string kind;                   ///< "gpu" or "cpu"
  std::vector<std::string> vendors;   ///< who made the machine, as its firmware says: "Amazon EC2"
  std::vector<std::string> products;  ///< of the machine: "p5.48xlarge"
  bool onlyByName = false;            ///< never chosen by matching: only by `sku` or --sku

  /// How many conditions there are: of several profiles that match, the one with most is meant.
  [[nodiscard]] int conditions() const;
};

/// Facts by which a learned profile is known, and one that was learned from simulated records.
inline constexpr const char* kLearnedFact = "learned_from";
inline constexpr const char* kSimulatedFact = "simulated";

/// A loaded profile.
struct Profile {
  std::string name;
  std::string description;
  std::string base;  ///< the profile that this one extends; may be empty
  SkuMatch match;
  int deviceCount = 0;                  ///< devices a node must have; 0: any number from one up (host)
  std::map<std::string, double> peaks;  ///< theoretical peaks in base units: "flops.bf16", "memory_bandwidth"
  std::map<std::string, std::string> facts;  ///< facts for people: architecture, links, with sources
  std::map<std::string, Json>
      stageParams;  ///< "compute.gemm" -> parameters the profile fixes (shape, algorithm, time)
  std::vector<Expectation> expectations;
  std::filesystem::path path;
  std::string text;                             ///< what was read, with the files that the profile includes
  std::string sha256;                           ///< of text
  std::map<std::string, std::string> includes;  ///< path below the profile's folder -> SHA-256
};

/// Where the profile that another one extends may lie, as NAME.toml: beside it, then in these folders.
using ProfileFolders = std::vector<std::filesystem::path>;

/// Reads one profile; every mistake is one line of the error, with file:line:column, and in `found` with its
/// parts. Metrics are checked against the catalogue (name, unit) when one is given.
Result<Profile> loadProfile(const std::filesystem::path& path, const Catalog* catalog,
                            const ProfileFolders& folders = {}, std::vector<Complaint>* found = nullptr);

/// The same from text; `path` only names it. Only a frozen text includes others: nothing is read from disk.
/// `budget`: what several profiles may come to together.
Result<Profile> parseProfile(const std::string& text, const std::filesystem::path& path,
                             const Catalog* catalog, ExpectationBudget* budget = nullptr);

/// All profiles of a folder, by name. A damaged profile is an error, never left out.
Result<std::map<std::string, Profile>> loadProfiles(const std::filesystem::path& folder,
                                                    const Catalog* catalog,
                                                    const ProfileFolders& folders = {},
                                                    std::vector<Complaint>* found = nullptr);

/// One device as the inventory reports it.
struct DeviceFacts {
  std::string id;    ///< "gpu0", "cpu0"
  std::string kind;  ///< "gpu" or "cpu"
  std::string name;
  std::string pciId;  ///< "10de:2330"; empty on a CPU
  double memoryBytes = 0;
  std::string vendor;  ///< of the machine around it; empty: unknown
  std::string product;
};

/// How the devices of a node were matched.
struct SkuChoice {
  const Profile* profile = nullptr;  ///< nullptr: unknown SKU
  std::string how;  ///< "matched by PCI id 10de:2330, name and memory", "named by the plan", "unknown: ..."
  std::vector<std::string>
      problems;  ///< devices that do not match the chosen profile (mixed node), for the verdict
};

/// Matches every device; all must agree. Of the profiles that match a device the one with most conditions
/// counts: a site's before that of the model. With `sku` other than "auto" that profile is taken and devices
/// that do not match it become problems. An unknown profile name is an error that lists the nearest, and so
/// are devices that match several profiles equally well: a plan that allows an unknown SKU must not run a
/// known one without limits.
Result<SkuChoice> chooseSku(const std::map<std::string, Profile>& profiles, const std::string& sku,
                            const std::vector<DeviceFacts>& devices);

/// A profile learned from simulated records holds figures that somebody wrote into a scenario, one learned
/// from real records says nothing of a scenario: kUsage where `profile` and what it is to judge are of
/// different kinds. Profiles that were not learned judge both.
Status checkOrigin(const Profile& profile, bool simulated);

/// The JSON Schema of these files, with the tests and metrics of the catalog.
Json profileSchema(const Catalog& catalog);

}  // namespace muster
