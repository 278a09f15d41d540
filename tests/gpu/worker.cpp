// SPDX-License-Identifier: Apache-2.0
// muster-gpu-worker: our side of the contest with PyTorch, see contest.py and torch_worker.py, which answers
// the same questions. Usage: muster-gpu-worker BACKENDS; a line of standard input is a question, each answer
// a line of JSON.
#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>

#include "kernels/checks/timing.h"
#include "kernels/interfaces/backend.h"
#include "tests/bench/trained_model.h"

namespace muster::bench {
namespace {

constexpr double kWarmup = 0.3;    ///< seconds, as torch_worker.py
constexpr double kMeasured = 1.0;  ///< seconds

struct Rate {
  double value;
  const char* unit;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Answers questions on one GPU; what takes long to prepare is kept for the next turn.
class Contestant {
 public:
  explicit Contestant(std::unique_ptr<Backend> backend, std::unique_ptr<Device> device)
      : backend_(std::move(backend)), device_(std::move(device)) {}

  Result<Rate> answer(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "gemm") return gemm(words);
    if (what == "copy") return copy(words);
    if (what == "host_to_device" || what == "device_to_host")
      return hostCopy(words, what == "host_to_device");
    if (what == "train") return train(words);
    return Error{ErrorCode::kUsage, "there is no question \"" + what + "\"", ""};
  }

 private:
  Result<double> secondsOf(const std::function<Status()>& work) {
    SamplingOptions options;
    options.warmupMin = options.warmupMax = kWarmup;
    options.minTime = options.maxTime = kMeasured;
    MUSTER_TRY(Sampling sampling, sampleWork(*device_, work, options, [](double) { return true; }));
    return median(std::move(sampling.seconds));
  }

  /// DTYPE SIZE: the best algorithm of the library for a square product.
  Result<Rate> gemm(std::istream& words) {
    std::string name;
    GemmSpec spec;
    words >> name >> spec.m;
    MUSTER_TRY(spec.dtype, dtypeFromName(name));
    spec.n = spec.k = spec.m;
    spec.algorithm = "best";
    if (ops_ == nullptr) {
      MUSTER_TRY(ops_, backend_->ops(*device_));
    }
    MUSTER_TRY(std::unique_ptr<Gemm> gemm, ops_->gemm(spec));
    MUSTER_CHECK_OK(gemm->prepare(1));
    MUSTER_TRY(double seconds, secondsOf([&] { return gemm->run(); }));
    MUSTER_TRY(ReferenceError error, gemm->checkAgainstReference(64, 1));
    if (error.wrong > 0)
      return Error{ErrorCode::kCorrupt, std::to_string(error.wrong) + " elements are wrong", name};
    return Rate{spec.flops() / seconds, "FLOP/s"};
  }

  /// BYTES
  Result<Rate> copy(std::istream& words) {
    uint64_t bytes = 0;
    words >> bytes;
    MUSTER_TRY(std::unique_ptr<Buffer> from, device_->allocate(bytes));
    MUSTER_TRY(std::unique_ptr<Buffer> to, device_->allocate(bytes));
    MUSTER_CHECK_OK(device_->fillNormal(*from, Dtype::kF32, 1));
    MUSTER_TRY(double seconds,
               secondsOf([&] { return device_->memoryOp(MemoryOp::kCopy, *to, from.get(), nullptr); }));
    MUSTER_TRY(Mismatch mismatch, device_->compareBits(*from, *to, Dtype::kF32));
    if (mismatch.wrong > 0) return Error{ErrorCode::kCorrupt, "the copy differs", ""};
    return Rate{2 * static_cast<double>(bytes) / seconds, "B/s"};
  }

  /// BYTES: by the copy engine, to or from pinned memory of the nearest NUMA node.
  Result<Rate> hostCopy(std::istream& words, bool toDevice) {
    uint64_t bytes = 0;
    words >> bytes;
    MUSTER_TRY(std::unique_ptr<Copies> copies, backend_->copies(*device_));
    MUSTER_TRY(std::vector<HostNode> nodes, copies->hostNodes());
    MUSTER_TRY(std::unique_ptr<Buffer> host, copies->allocatePinned(bytes, nodes.front().node));
    MUSTER_TRY(std::unique_ptr<Buffer> there, device_->allocate(bytes));
    MUSTER_CHECK_OK(copies->fillPinned(*host, toDevice ? 1 : 2));
    MUSTER_CHECK_OK(device_->fillPattern(*there, toDevice ? 2 : 1));
    const Transfer transfer =
        toDevice ? Transfer{there.get(), host.get()} : Transfer{host.get(), there.get()};
    MUSTER_TRY(double seconds, secondsOf([&] { return copies->copy({transfer}, CopyEngine::kCopyEngine); }));
    MUSTER_TRY(Mismatch mismatch,
               toDevice ? device_->checkPattern(*there, 1) : copies->checkPinned(*host, 1));
    if (mismatch.wrong > 0) return Error{ErrorCode::kCorrupt, "the copy differs", ""};
    return Rate{static_cast<double>(bytes) / seconds, "B/s"};
  }

  /// MODEL BATCH SIZE: whole steps in bf16; SIZE is the side of an image, or tokens in a sequence.
  Result<Rate> train(std::istream& words) {
    train::ModelSpec spec;
    int64_t size = 0;
    words >> spec.name >> spec.batch >> size;
    spec.imageSize = spec.sequence = size;
    std::unique_ptr<Program>& program = programs_[spec.name + " " + std::to_string(spec.batch)];
    if (nn_ == nullptr) {
      MUSTER_TRY(nn_, backend_->nn(*device_));
    }
    if (program == nullptr) {
      ProgramOptions options;
      options.dtype = Dtype::kBf16;
      options.deterministic = false;
      MUSTER_TRY(program, trainedModel(*nn_, spec, options));
    }
    MUSTER_TRY(double seconds, secondsOf([&] { return trainingStep(*program, spec); }));
    return Rate{static_cast<double>(spec.batch) / seconds, "samples/s"};
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Nn> nn_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

Result<Contestant> open(const std::string& backends) {
  BackendOptions where;
  where.folder = backends;
  MUSTER_TRY(std::unique_ptr<Backend> backend, loadBackend("cuda", where));
  MUSTER_TRY(Inventory * inventory, backend->inventory());
  MUSTER_TRY(std::vector<DeviceInfo> devices, inventory->devices());
  if (devices.empty()) return Error{ErrorCode::kNotFound, "the NVIDIA driver sees no GPU", ""};
  MUSTER_TRY(std::unique_ptr<Device> device, backend->open(devices.front().id));
  return Contestant(std::move(backend), std::move(device));
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  using muster::Json;
  auto contestant = muster::bench::open(argc == 2 ? argv[1] : "");
  if (!contestant.ok()) {
    std::cerr << "muster-gpu-worker: " << contestant.error().text() << "\n";
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto rate = contestant->answer(line);
    const Json answer =
        rate.ok() ? Json{{"value", rate->value}, {"unit", rate->unit}} : Json{{"error", rate.error().text()}};
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}
