// SPDX-License-Identifier: Apache-2.0
// Modules beside a backend: libraries that hold what needs libraries of its own, opened on first use, so that
// what is missing stops only what needs it.
#pragma once

#include <string>
#include <type_traits>

#include "runner/core/result.h"

namespace muster {

/// Opens `file` of `folder` for good and finds `symbol` in it, an entry that begins with a build id.
/// kNotFound in the loader's words, which name a missing library; kProtocol for a module of another build.
Result<const void*> openModuleEntry(const std::string& folder, const std::string& file, const char* symbol);

/// The entry of a module. `Entry` is plain data that begins with `const char* buildId`.
template <typename Entry>
class Module {
 public:
  /// `symbol` is what the module exports its entry as.
  Module(std::string file, const char* symbol) : file_(std::move(file)), symbol_(symbol) {}

  /// Opens the module when it is asked for the first time.
  Result<const Entry*> open(const std::string& folder) {
    static_assert(std::is_standard_layout_v<Entry> && std::is_same_v<decltype(Entry::buildId), const char*>);
    if (entry_ != nullptr) return entry_;
    MUSTER_TRY(const void* found, openModuleEntry(folder, file_, symbol_));
    entry_ = static_cast<const Entry*>(found);
    return entry_;
  }

 private:
  std::string file_;
  const char* symbol_;
  const Entry* entry_ = nullptr;
};

}  // namespace muster
