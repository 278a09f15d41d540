// SPDX-License-Identifier: Apache-2.0
// Names of what moves bytes.
#include "kernels/interfaces/copies.h"

#include "runner/core/text.h"

namespace muster {

const char* copyEngineName(CopyEngine engine) {
  return engine == CopyEngine::kCopyEngine ? "copy_engine" : "kernel";
}

Result<CopyEngine> copyEngineFromName(std::string_view name) {
  for (CopyEngine engine : {CopyEngine::kCopyEngine, CopyEngine::kKernel})
    if (name == copyEngineName(engine)) return engine;
  return Error{ErrorCode::kUsage,
               "nothing called \"" + printable(name, 40) + "\" copies memory, expected copy_engine or kernel",
               ""};
}

}  // namespace muster
