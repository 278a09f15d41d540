// SPDX-License-Identifier: Apache-2.0
// The waivers that were in force, as the record keeps them.
#pragma once

#include "runner/record/record.h"

namespace muster {

/// {"path", "sha256", "text", "list"}; call it only where there is a waiver file.
Json waiversToJson(const Record& record);
Status readWaiversJson(const Json& json, Record& record);

}  // namespace muster
