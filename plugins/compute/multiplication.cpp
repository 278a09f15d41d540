// SPDX-License-Identifier: Apache-2.0
// Preparing and checking one multiplication.
#include "plugins/compute/multiplication.h"

#include <fmt/format.h>

namespace muster::compute {

Result<Multiplication> Multiplication::prepare(const sdk::Host& host, Device& device, Ops& ops,
                                               const GemmSpec& spec, int referenceSamples, uint64_t seed) {
  MUSTER_TRY(auto gemm, ops.gemm(spec));
  Multiplication made(host, device, spec, std::move(gemm));
  made.referenceSamples_ = referenceSamples;
  made.seed_ = seed;
  MUSTER_CHECK_OK(made.gemm_->prepare(seed));
  MUSTER_CHECK_OK(made.checkReference());
  MUSTER_CHECK_OK(made.gemm_->keepResult());
  return made;
}

Status Multiplication::checkReference() {
  MUSTER_CHECK_OK(gemm_->run());
  MUSTER_CHECK_OK(device_->synchronize());
  MUSTER_TRY(ReferenceError error, gemm_->checkAgainstReference(referenceSamples_, seed_));
  if (error.checked == 0)
    return Error{ErrorCode::kCorrupt, "no element was checked against the reference", device_->info().id};
  faults_.wrong += error.wrong;
  if (error.worst >= faults_.worst.worst) faults_.worst = error;
  if (error.wrong > 0)
    note(fmt::format("{} of {} checked elements are wrong, the worst at row {}, column {}", error.wrong,
                     error.checked, error.row, error.column));
  return {};
}

Status Multiplication::compare() {
  if (tally_ == nullptr) {
    MUSTER_TRY(tally_, device_->tally());
  }
  MUSTER_CHECK_OK(compare(*tally_));
  MUSTER_TRY(const Mismatch found, tally_->read());
  blame(found);
  return {};
}

Status Multiplication::compare(Tally& found) {
  ++faults_.comparisons;
  return gemm_->compareWithKept(found);
}

void Multiplication::blame(const Mismatch& found) {
  faults_.mismatches = found.wrong;
  if (found.wrong == 0) return;
  note(fmt::format(
      "{} elements differ from the first result, the first at byte offset {} (bits {:#x}, then {:#x})",
      found.wrong, found.firstOffset, found.expectedBits, found.actualBits));
}

void Multiplication::note(const std::string& fault) {
  const std::string text =
      fmt::format("{}: {} {}x{}x{} at {:.3f} s: {}", device_->info().id, dtypeName(spec_.dtype), spec_.m,
                  spec_.n, spec_.k, device_->now(), fault);
  if (!faults_.first.empty()) return;
  faults_.first = text;
  host_.log(MUSTER_LOG_ERROR, text);
}

}  // namespace muster::compute
