// SPDX-License-Identifier: Apache-2.0
// What a vendor needs to take a part back.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/record/record.h"

namespace muster {

struct BundleFile {
  std::string name;
  std::string text;
  std::string note = {};  ///< what is left out of it, as it says itself
};

/// The stages with a finding about `device`; of a device without one, all in which it was measured.
std::set<std::string> stagesAbout(const Record& record, const std::string& device);

/// Identity (device.json), findings with the command that measures them again (findings.md), each checked
/// value beside that of its peers (checks.csv), samples of all devices in the stages concerned (samples.csv),
/// their readings (telemetry.csv), and the output of the device's processes (output.txt). `sha256`: of the
/// record.
std::vector<BundleFile> rmaBundle(const Record& record, const std::string& device, const std::string& sha256);

}  // namespace muster
