// SPDX-License-Identifier: Apache-2.0
// requirements.toml: the clauses of a contract, and which stages and metrics are the evidence for each.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/metrics/measurement.h"

namespace muster {

/// One clause. Its evidence are the check results of the metrics, in the stages, with the labels. It needs
/// some of each metric, or of each stage where no metric is named.
struct Clause {
  std::string id;                    ///< "4.2.1"
  std::string requirement;           ///< in a few words
  std::string source;                ///< where it comes from; may be empty
  std::vector<std::string> stages;   ///< empty: all stages
  std::vector<std::string> metrics;  ///< empty: all metrics of the stages
  Labels where;
};

struct Requirements {
  std::string name;
  std::vector<Clause> clauses;  ///< at least one
  std::string text;             ///< of the file
  std::string sha256;
};

/// How the copy is called that lies beside the reports that show it.
inline constexpr const char* kRequirementsFile = "requirements.toml";

/// Whether a copy lies there. A symbolic link is an error: nobody asked for what it leads to. So is what
/// another user put into a shared directory (isPlanted()).
Result<bool> isKept(const std::filesystem::path& file);

/// Reads the text of a requirements.toml; `file` appears in messages. All mistakes are in one kUsage error,
/// each with file:line:column.
Result<Requirements> parseRequirements(std::string_view text, const std::string& file);
Result<Requirements> readRequirements(const std::filesystem::path& path);

/// The JSON Schema of these files.
Json requirementsSchema();

}  // namespace muster
