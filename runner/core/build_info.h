// SPDX-License-Identifier: Apache-2.0
// The version of this build, and the id that all parts of one build share.
#pragma once

namespace muster {

const char* toolVersion();  ///< "0.1.0"
const char* buildId();      ///< version and commit; backends of another build are refused

}  // namespace muster
