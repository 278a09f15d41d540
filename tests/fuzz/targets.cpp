// SPDX-License-Identifier: Apache-2.0
// See targets.h.
#include "tests/fuzz/targets.h"

#include "runner/core/text.h"

namespace muster::testing {

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets = {
      {"store-request", checkStoreRequest, storeRequestSamples},
      {"store-stream", checkStoreStream, storeStreamSamples},
      {"host-list", checkHostList, hostListSamples},
      {"frames", checkFrames, frameSamples},
      {"perftest", checkPerftest, perftestSamples},
      {"cifar", checkCifar, cifarSamples},
      {"fashion-mnist", checkFashionMnist, fashionMnistSamples},
      {"jpeg", checkJpeg, jpegSamples},
      {"tar", checkTar, tarSamples},
  };
  return kTargets;
}

std::string problemOfError(const Error& error) {
  const std::string text = error.text();
  if (error.message.empty()) return "an error says nothing";
  if (text.size() > 4000) return "an error is endless: " + printable(text);
  return printable(text, text.size()) == text ? "" : "an error is not printable: " + printable(text);
}

}  // namespace muster::testing
