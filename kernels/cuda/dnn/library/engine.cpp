// SPDX-License-Identifier: Apache-2.0
// Handles of the libraries, and the choice between their algorithms.
#include "kernels/cuda/dnn/library/engine.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <mutex>

#include "kernels/cuda/dnn/device/grids.h"

namespace muster::cuda {
namespace {

constexpr int kChoiceRuns = 3;

Element elementFor(Dtype dtype) {
  if (dtype == Dtype::kF16) return Element::kF16;
  return dtype == Dtype::kBf16 ? Element::kBf16 : Element::kF32;
}

/// Choices of this process, by what was chosen for. Times differ from one measurement to the next: what two
/// programs of one process compute must not.
class Choices {
 public:
  bool find(const std::string& key, size_t& index) {
    const std::lock_guard lock(mutex_);
    const auto found = byKey_.find(key);
    if (found == byKey_.end()) return false;
    index = found->second;
    return true;
  }
  void keep(const std::string& key, size_t index) {
    const std::lock_guard lock(mutex_);
    byKey_[key] = index;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, size_t> byKey_;
};

Choices& choices() {
  static Choices all;
  return all;
}

}  // namespace

std::string libraryVersions() {
  const size_t dnn = cudnnGetVersion();
  const size_t blas = cublasLtGetVersion();
  return fmt::format("cudnn {}.{}.{}, cublaslt {}.{}.{}", dnn / 10000, dnn / 100 % 100, dnn % 100,
                     blas / 10000, blas / 100 % 100, blas % 100);
}

Engine::Engine(CudaDevice& device, const ProgramOptions& options)
    : device(device),
      stream(device.stream()),
      dtype(options.dtype),
      element(elementFor(options.dtype)),
      deterministic(options.deterministic) {}

Engine::~Engine() {
  if (blas != nullptr) (void)cublasLtDestroy(blas);
  if (cudnn != nullptr) (void)cudnnDestroy(cudnn);
}

Result<std::unique_ptr<Engine>> Engine::open(CudaDevice& device, const ProgramOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(device, options));
  MUSTER_CHECK_OK(engine->start());
  return engine;
}

Status Engine::start() {
  MUSTER_CUDA(cudaSetDevice(device.ordinal()));
  int processors = 0;
  MUSTER_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.ordinal()));
  columnBlocks = 2 * static_cast<int64_t>(processors);
  MUSTER_CUDNN(cudnnCreate(&cudnn));
  MUSTER_CUDNN(cudnnSetStream(cudnn, stream));
  MUSTER_CUBLAS(cublasLtCreate(&blas));
  return {};
}

uint64_t Engine::columnBytes(int64_t rows, int64_t count, int sums) const {
  const int vector = vectorOf(count, bytesOf(element));
  return static_cast<uint64_t>(columnScratch(rows, count, vector, sums, columnBlocks)) * sizeof(float);
}

/// The best of a few runs behind one that warms up, by the device's own time: what launches cost the host
/// would decide between short kernels.
Result<double> Engine::secondsOf(const std::function<Status()>& run) {
  MUSTER_CHECK_OK(run());
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kChoiceRuns; ++i) {
    MUSTER_TRY(const double seconds, device.time(run));
    best = std::min(best, seconds);
  }
  return best;
}

Result<size_t> Engine::choose(const std::string& key, size_t count,
                              const std::function<Status(size_t)>& run) {
  const std::string whole =
      fmt::format("{} {} {} {}", device.ordinal(), dtypeName(dtype), deterministic, key);
  size_t best = 0;
  if (choices().find(whole, best) && best < count) return best;
  double least = std::numeric_limits<double>::infinity();
  Status failure;
  bool any = false;
  for (size_t i = 0; i < count && !(any && deterministic); ++i) {
    auto seconds = secondsOf([&] { return run(i); });
    if (!seconds.ok()) {
      if (failure.ok()) failure = std::move(seconds).error();
      MUSTER_CUDA(cudaStreamSynchronize(stream));  // fails where the GPU itself did: nothing runs any more
      continue;
    }
    if (any && *seconds >= least) continue;
    any = true;
    least = *seconds;
    best = i;
  }
  if (!any && failure.ok())
    return Error{ErrorCode::kUnsupported, "the library offers no algorithm for " + key, ""};
  if (!any)
    return std::move(failure).error().context("none of " + std::to_string(count) + " algorithms runs");
  choices().keep(whole, best);
  return best;
}

}  // namespace muster::cuda
