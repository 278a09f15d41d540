// SPDX-License-Identifier: Apache-2.0
// Measures the local compute time of a rank by filling inputs.
#include "plugins/collective/local_compute_time.h"

#include "plugins/collective/params.h"

namespace muster::collective {

Result<double> measureLocalComputeTime(const Bench& bench, int probes) {
  CollectiveSpec
      spec;  // all_reduce in f32: every rank has equally much to fill, whatever the case's op and root
  spec.count = countFor(spec, kLocalComputeBytes, bench.group.size());
  MUSTER_TRY(std::unique_ptr<Collective> work, bench.group.collective(spec));
  MUSTER_CHECK_OK(work->prepare(0));  // the first one meets memory that was never touched
  double sum = 0;
  for (int probe = 0; probe < probes; ++probe) {
    bench.host.progress(1, "measuring the local compute time of each rank");
    if (bench.host.cancelled()) return Error{ErrorCode::kTimeout, "the sweep was cancelled", ""};
    MUSTER_CHECK_OK(bench.group.barrier());
    MUSTER_TRY(const double seconds, bench.group.time([&] { return work->prepare(0); }));
    sum += seconds;
  }
  return sum / probes;
}

}  // namespace muster::collective
