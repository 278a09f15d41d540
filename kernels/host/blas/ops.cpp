// SPDX-License-Identifier: Apache-2.0
// The host's operations: which libraries multiply which types. The entry of host_blas.so.
#include "kernels/interfaces/ops.h"

#include <array>
#include <map>
#include <tuple>

#include "kernels/checks/gemm_reference.h"
#include "kernels/host/blas.h"
#include "kernels/host/blas/gemm.h"
#include "runner/core/build_info.h"
#include "runner/core/text.h"

namespace muster::host {
namespace {

struct Library {
  const char* name;
  Result<std::unique_ptr<Multiplier>> (*make)(const GemmSpec& spec, int threads);
};
constexpr std::array kLibraries = {Library{"onednn", makeOnednn}, Library{"openblas", makeOpenblas}};

class HostOps : public Ops {
 public:
  HostOps(Device& device, int threads) : device_(device), threads_(threads) {}

  [[nodiscard]] std::vector<Dtype> gemmDtypes() const override {
    std::vector<Dtype> dtypes;
    for (Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kBf16, Dtype::kI8})
      if (!gemmAlgorithms(dtype).empty()) dtypes.push_back(dtype);
    return dtypes;
  }

  /// Which of two is the default is measured for each shape, see HostGemm::choose().
  [[nodiscard]] std::vector<std::string> gemmAlgorithms(Dtype dtype) const override {
    const GemmSpec probe{64, 64, 64, dtype, ""};
    std::vector<std::string> names;
    for (const Library& library : kLibraries)
      if (library.make(probe, threads_).ok()) names.emplace_back(library.name);
    return names;
  }

  Result<std::unique_ptr<Gemm>> gemm(const GemmSpec& spec) override {
    MUSTER_CHECK_OK(checkGemmShape(spec));
    MUSTER_TRY(std::vector<Candidate> candidates, candidatesFor(spec));
    return makeGemm(device_, spec, std::move(candidates), chosen_[{spec.dtype, spec.m, spec.n, spec.k}]);
  }

 private:
  Result<std::vector<Candidate>> candidatesFor(const GemmSpec& spec);

  Device& device_;
  int threads_;
  std::map<std::tuple<Dtype, int64_t, int64_t, int64_t>, std::string> chosen_;
};

/// The library that was asked for, or all that can.
Result<std::vector<Candidate>> HostOps::candidatesFor(const GemmSpec& spec) {
  std::vector<Candidate> candidates;
  std::vector<std::string> names = {"default"};
  std::vector<std::string> reasons;
  for (const Library& library : kLibraries) {
    names.emplace_back(library.name);
    if (spec.algorithm != "default" && spec.algorithm != library.name) continue;
    auto made = library.make(spec, threads_);
    if (made.ok())
      candidates.emplace_back(library.name, std::move(made).value());
    else if (made.error().code == ErrorCode::kUnsupported)
      reasons.push_back(made.error().text());
    else
      return std::move(made).error();
  }
  if (!candidates.empty()) return candidates;
  if (reasons.empty())
    return Error{ErrorCode::kUsage,
                 "unknown algorithm \"" + printable(spec.algorithm, 64) + "\", expected one of " +
                     join(names, ", ") + didYouMean(spec.algorithm, names),
                 ""};
  return Error{ErrorCode::kUnsupported, join(reasons, "; "), ""};
}

Result<std::unique_ptr<Ops>> openOps(Device& device, int threads) {
  return std::unique_ptr<Ops>(std::make_unique<HostOps>(device, threads));
}

}  // namespace
}  // namespace muster::host

extern "C" __attribute__((visibility("default")))
const muster::host::BlasEntry muster_host_blas_entry = {muster::buildId(), muster::host::openOps};
