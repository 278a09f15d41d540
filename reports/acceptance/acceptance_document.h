// SPDX-License-Identifier: Apache-2.0
// acceptance.toml: what only people know about an acceptance, for the reports of nodes and fleets.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/acceptance/requirements.h"
#include "runner/core/result.h"

namespace muster {

/// A part that was ordered: a number of pieces, or a version of software.
struct OrderedPart {
  std::string part;     ///< as the inventory names it: "NVIDIA H100 80GB HBM3", "driver"
  int count = 0;        ///< of one node; 0: a version is ordered
  std::string version;  ///< "580.95.05"
};

/// Who takes care of a finding. Empty selectors match everything.
struct FindingOwner {
  std::string node;
  std::string device;
  std::string serial;
  std::string metric;
  std::string name;
  std::string due;
};

/// What a finding is about, to be looked up among owners.
struct FindingSubject {
  std::string node;
  std::string device;
  std::string serial;
  std::string metric;
};

struct AcceptanceDocument {
  std::string sha256;  ///< of the file; empty: none was given
  std::string text;    ///< of the file
  std::string number;
  std::string revision;
  std::string contract;
  std::string site;
  std::string supplier;
  std::string customer;
  std::string witness;
  std::string scope;
  std::vector<std::string> exclusions;
  std::vector<OrderedPart> ordered;
  std::vector<FindingOwner> owners;
  std::optional<Requirements> requirements;  ///< of a file of its own

  /// The first owner whose selectors all match, or nullptr.
  [[nodiscard]] const FindingOwner* ownerOf(const FindingSubject& subject) const;
};

/// Reads the text of an acceptance.toml; `file` appears in messages. All mistakes are in one kUsage error,
/// each with file:line:column.
Result<AcceptanceDocument> parseAcceptanceDocument(std::string_view text, const std::string& file);

/// How the copy is called that lies beside the reports that show it.
inline constexpr const char* kAcceptanceFile = "acceptance.toml";

/// Reads the file at `path`, with its digest.
Result<AcceptanceDocument> readAcceptanceDocument(const std::filesystem::path& path);

}  // namespace muster
