// SPDX-License-Identifier: Apache-2.0
// See targets.h.
#include "tests/fuzz/targets.h"

namespace muster::testing {

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets = {
      {"store-request", checkStoreRequest, storeRequestSamples},
      {"store-stream", checkStoreStream, storeStreamSamples},
      {"host-list", checkHostList, hostListSamples},
      {"frames", checkFrames, frameSamples},
      {"perftest", checkPerftest, perftestSamples},
      {"import-text", checkImport, importTextSamples},
      {"import-json", checkImport, importJsonSamples},
      {"cifar", checkCifar, cifarSamples},
      {"fashion-mnist", checkFashionMnist, fashionMnistSamples},
      {"jpeg", checkJpeg, jpegSamples},
      {"tar", checkTar, tarSamples},
  };
  return kTargets;
}

}  // namespace muster::testing
