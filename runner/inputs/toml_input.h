// SPDX-License-Identifier: Apache-2.0
// A TOML file with what it includes, as one document.
#pragma once

#include "runner/core/toml/toml_document.h"
#include "runner/inputs/included.h"

namespace muster {

/// What some editors put first; it is no part of a plan.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Parses the text and, by its key `include` (a list of paths), the files that it includes, which lie beneath
/// it: what the including file says wins, and of two files of one list the later. A file that is included
/// twice counts once, in its first place; one that includes itself is an error. Errors are kUsage with
/// file:line:column. The document no longer has the key `include`.
Result<TomlDocument> readTomlInput(InputText& input);

/// The frozen text of the file at `path`. Fails where it is empty, no TOML or larger than 1 MiB.
Result<std::string> frozenToml(const std::filesystem::path& path);

/// `document` over the files of the list `names`, each of which stands at a place of its own.
struct IncludeName {
  std::string path;   ///< as it is written
  std::string place;  ///< file:line:column
};
Result<TomlDocument> layOver(const TomlDocument& document, const std::vector<IncludeName>& names,
                             InputText& input);

/// The JSON Schema of `include`.
Json includeSchema();
/// The schema `root` of a document, of which a part may stand in a file that one of `keys` names: only
/// without these keys it must be complete.
Json completeUnless(Json root, const std::vector<std::string>& keys);

}  // namespace muster
