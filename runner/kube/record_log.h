// SPDX-License-Identifier: Apache-2.0
// The record that a pod prints at the end of its log (templates/helm/muster/files/pod.sh).
#pragma once

#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster::kube {

struct LoggedRecord {
  std::string node;
  int exitCode = -1;
  std::string text;  ///< of record.json; its digest is the one that the pod printed
};

/// The last record of a log. kProtocol where there is none, or an incomplete or changed one.
Result<LoggedRecord> recordInLog(std::string_view log);

}  // namespace muster::kube
