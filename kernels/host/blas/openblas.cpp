// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication by OpenBLAS: sgemm and dgemm.
#include <cblas.h>

#include <limits>

#include "kernels/host/blas/multiplier.h"
#include "runner/core/text.h"

namespace muster::host {
namespace {

/// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "0.3.21".
std::string version() {
  const std::vector<std::string> words = split(openblas_get_config(), ' ');
  return words.size() > 1 ? words[1] : "?";
}

class OpenblasMultiplier : public Multiplier {
 public:
  explicit OpenblasMultiplier(const GemmSpec& spec)
      : dtype_(spec.dtype),
        m_(static_cast<blasint>(spec.m)),
        n_(static_cast<blasint>(spec.n)),
        k_(static_cast<blasint>(spec.k)) {}

  Status run(const void* a, const void* b, void* c) override {
    if (dtype_ == Dtype::kF64)
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m_, n_, k_, 1.0, static_cast<const double*>(a),
                  k_, static_cast<const double*>(b), n_, 0.0, static_cast<double*>(c), n_);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m_, n_, k_, 1.0f, static_cast<const float*>(a),
                  k_, static_cast<const float*>(b), n_, 0.0f, static_cast<float*>(c), n_);
    return {};
  }

  [[nodiscard]] std::string name() const override {
    const int threads = openblas_get_num_threads();
    return "openblas " + version() + " " + openblas_get_corename() + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }

 private:
  Dtype dtype_;
  blasint m_, n_, k_;
};

}  // namespace

Result<std::unique_ptr<Multiplier>> makeOpenblas(const GemmSpec& spec, int threads) {
  if (spec.dtype != Dtype::kF32 && spec.dtype != Dtype::kF64)
    return Error{ErrorCode::kUnsupported, std::string("OpenBLAS multiplies no ") + dtypeName(spec.dtype), ""};
  const int64_t limit = std::numeric_limits<blasint>::max();
  if (spec.m > limit || spec.n > limit || spec.k > limit)
    return Error{ErrorCode::kUnsupported, "OpenBLAS takes no dimension above " + std::to_string(limit), ""};
  openblas_set_num_threads(threads);
  return std::unique_ptr<Multiplier>(std::make_unique<OpenblasMultiplier>(spec));
}

}  // namespace muster::host
