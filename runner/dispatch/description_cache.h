// SPDX-License-Identifier: Apache-2.0
// Descriptions of plugins, kept between runs, so that a run does not start a process for each library.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "runner/core/json.h"

namespace muster {

/// The file `muster/plugins.json` below $XDG_CACHE_HOME (else ~/.cache): by library, what its host said and
/// the identity of the file that said it. A library that was replaced or changed is described again; so are
/// all after a change of muster-host. The file is used and written only where nobody but root and this user
/// could change it (trustedPath); without it, or with a damaged one, libraries are described as if it were
/// empty.
class DescriptionCache {
 public:
  explicit DescriptionCache(const std::filesystem::path& hostExecutable);

  /// What `--describe` answered for this library, or nullptr. Libraries that others could change are not
  /// answered for: their host refuses them with the reason.
  [[nodiscard]] const Json* find(const std::filesystem::path& library) const;

  /// What is noted now is the library as it was when this object first saw it, in find().
  void keep(const std::filesystem::path& library, const Json& answer);

  /// Writes what keep() added; a failure costs the next run a description and nothing else.
  void save();

 private:
  std::filesystem::path file_;  ///< empty: there is none
  std::string host_;
  Json entries_ = Json::object();  ///< by path: {"identity", "answer"}
  mutable std::map<std::string, std::string> seen_;
  bool changed_ = false;
};

}  // namespace muster
