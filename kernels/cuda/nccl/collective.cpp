// SPDX-License-Identifier: Apache-2.0
// Fills, runs and checks one collective on a GPU's memory.
#include "kernels/cuda/nccl/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/checks/wrong_source.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/nccl/elements.h"
#include "kernels/cuda/nccl/values.h"

namespace muster::cuda {
namespace {

constexpr int kNothingYet = 0xff;  ///< a result that nobody wrote is all ones: NaN
constexpr uint64_t kNone = ~0ull;

using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

class NcclCollective : public Collective, private RankExchange {
 public:
  NcclCollective(NcclGroup& group, const CollectiveSpec& spec, ncclDataType_t type, double& queued)
      : group_(group), spec_(spec), type_(type), queued_(queued) {}
  /// Giving buffers back waits for the work on them, and this until the group's deadline only: then it is
  /// aborted.
  ~NcclCollective() override { (void)group_.wait("work on buffers that are given back"); }

  Status allocate();
  Status prepare(uint64_t seed) override;
  Status run() override;
  Result<CollectiveMismatch> check() override;
  Status record(int runs) override;
  Status replay() override;

 private:
  [[nodiscard]] ExactValues values() const {
    // What is only moved may be any value that its type holds.
    return {spec_.dtype, reduces(spec_.op) ? spec_.reduce : ReduceOp::kMax, group_.size(), seed_};
  }
  [[nodiscard]] uint64_t elementBytes() const { return dtypeBits(spec_.dtype) / 8; }
  [[nodiscard]] double movedBytes() const {
    return static_cast<double>(spec_.bytes(group_.size())) * spec_.busFactor(group_.size());
  }
  Result<WrongElements> countWrong();
  Result<double> inputAt(uint64_t index) override;
  Status exchange(CollectiveOp op, std::span<const std::byte> sent, std::span<std::byte> received) override;

  NcclGroup& group_;
  CollectiveSpec spec_;
  ncclDataType_t type_;
  double& queued_;
  std::unique_ptr<Buffer> input_;  ///< none in place
  std::unique_ptr<Buffer> output_;
  std::unique_ptr<Buffer> found_;
  DeviceOperands at_;
  uint64_t seed_ = 0;
  bool prepared_ = false;
  GraphExec graph_;
  int recorded_ = 0;  ///< runs in graph_
};

/// In place, input and output lie in each other as in nccl-tests: a rank's block at its own place.
Status NcclCollective::allocate() {
  CudaDevice& device = group_.device();
  const uint64_t size = elementBytes();
  const uint64_t send = spec_.sendCount(group_.size()) * size;
  const uint64_t receive = spec_.receiveCount(group_.size()) * size;
  const uint64_t own = static_cast<uint64_t>(group_.rank()) * spec_.count * size;
  MUSTER_TRY(output_, device.allocate(spec_.inPlace ? std::max(send, receive) : receive));
  MUSTER_TRY(found_, device.allocate(sizeof(WrongElements)));
  at_.receive = bytesOf(*output_);
  at_.send = at_.receive;
  if (!spec_.inPlace) {
    MUSTER_TRY(input_, device.allocate(send));
    at_.send = bytesOf(*input_);
  } else if (send > receive) {
    at_.receive += own;
  } else if (receive > send) {
    at_.send += own;
  }
  return {};
}

Status NcclCollective::prepare(uint64_t seed) {
  seed_ = seed;
  MUSTER_CHECK_OK(group_.afterDevice());
  MUSTER_CUDA(cudaMemsetAsync(bytesOf(*output_), kNothingYet, output_->bytes(), group_.stream()));
  MUSTER_CUDA(launchInputs(at_.send, spec_.dtype, values(), group_.rank(), spec_.sendCount(group_.size()),
                           group_.stream()));
  prepared_ = true;
  return {};
}

Status NcclCollective::run() {
  if (!prepared_) return Error{ErrorCode::kInternal, "run() before prepare()", collectiveOpName(spec_.op)};
  queued_ += movedBytes();
  return group_.queue(collectiveOpName(spec_.op),
                      [&](ncclComm_t comm) { return runCollective(spec_, type_, at_, group_, comm); });
}

Status NcclCollective::record(int runs) {
  if (!prepared_) return Error{ErrorCode::kInternal, "record() before prepare()", collectiveOpName(spec_.op)};
  MUSTER_CHECK_OK(group_.wait("the work before a graph"));
  MUSTER_CUDA(cudaStreamBeginCapture(group_.stream(), cudaStreamCaptureModeThreadLocal));
  Status queued;
  for (int i = 0; i < runs && queued.ok(); ++i) queued = run();
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(group_.stream(), &captured);
  const Graph graph(captured);
  MUSTER_CHECK_OK(std::move(queued));
  MUSTER_CUDA(ended);
  cudaGraphExec_t made = nullptr;
  MUSTER_CUDA(cudaGraphInstantiateWithFlags(&made, captured, 0));
  graph_ = GraphExec(made);
  recorded_ = runs;
  queued_ -= movedBytes() * runs;  // recorded, not run
  return {};
}

Status NcclCollective::replay() {
  if (graph_.get() == nullptr)
    return Error{ErrorCode::kInternal, "replay() before record()", collectiveOpName(spec_.op)};
  queued_ += movedBytes() * recorded_;
  MUSTER_CUDA(cudaSetDevice(group_.device().ordinal()));
  MUSTER_CUDA(cudaGraphLaunch(graph_.get(), group_.stream()));
  return {};
}

Result<WrongElements> NcclCollective::countWrong() {
  WrongElements found = {0, kNone, 0};
  if (!hasResult(spec_, group_.rank())) return found;
  auto* place = reinterpret_cast<WrongElements*>(bytesOf(*found_));
  MUSTER_CUDA(cudaMemcpyAsync(place, &found, sizeof found, cudaMemcpyHostToDevice, group_.stream()));
  MUSTER_CUDA(launchCheck(at_.receive, spec_, values(), group_.rank(), place, group_.stream()));
  // Waited for first: a copy to pageable memory would block where a lost peer keeps the stream busy.
  MUSTER_CHECK_OK(group_.wait("checking a result"));
  MUSTER_CUDA(cudaMemcpyAsync(&found, place, sizeof found, cudaMemcpyDeviceToHost, group_.stream()));
  MUSTER_CHECK_OK(group_.wait("reading what a check found"));
  return found;
}

Status NcclCollective::exchange(CollectiveOp op, std::span<const std::byte> sent,
                                std::span<std::byte> received) {
  CollectiveSpec spec;
  spec.op = op;
  spec.dtype = Dtype::kI8;
  spec.count = received.size() / static_cast<size_t>(group_.size());
  MUSTER_TRY(auto send, group_.device().allocate(sent.size()));
  MUSTER_TRY(auto receive, group_.device().allocate(received.size()));
  const DeviceOperands at = {bytesOf(*send), bytesOf(*receive)};
  MUSTER_CUDA(cudaMemcpyAsync(at.send, sent.data(), sent.size(), cudaMemcpyHostToDevice, group_.stream()));
  MUSTER_CHECK_OK(group_.queue(
      "comparing results", [&](ncclComm_t comm) { return runCollective(spec, ncclInt8, at, group_, comm); }));
  MUSTER_CHECK_OK(group_.wait("comparing results"));
  MUSTER_CUDA(
      cudaMemcpyAsync(received.data(), at.receive, received.size(), cudaMemcpyDeviceToHost, group_.stream()));
  return group_.wait("comparing results");
}

Result<double> NcclCollective::inputAt(uint64_t index) {
  uint64_t bits = 0;
  MUSTER_CUDA(cudaMemcpyAsync(&bits, at_.send + index * elementBytes(), elementBytes(),
                              cudaMemcpyDeviceToHost, group_.stream()));
  MUSTER_CHECK_OK(group_.wait("reading an input"));
  double value = 0;
  withCollectiveElement(spec_.dtype, [&](auto element) {
    using Element = decltype(element);
    value = Element::load(static_cast<typename Element::Stored>(bits));
  });
  return value;
}

Result<CollectiveMismatch> NcclCollective::check() {
  if (!prepared_) return Error{ErrorCode::kInternal, "check() before prepare()", collectiveOpName(spec_.op)};
  MUSTER_TRY(WrongElements found, countWrong());
  CollectiveMismatch mismatch;
  mismatch.wrong = found.count;
  if (found.count > 0) {
    mismatch.firstElement = found.first;
    mismatch.lastElement = found.last;
  }
  const Status searched = findWrongSource(spec_, values(), group_.rank(), *this, mismatch);
  // What is wrong here is wrong, also if another rank is lost in the search; the next call tells that.
  if (!searched.ok() && mismatch.wrong == 0) return searched.error();
  return mismatch;
}

}  // namespace

Result<std::unique_ptr<Collective>> makeCollective(NcclGroup& group, const CollectiveSpec& spec,
                                                   double& queued) {
  MUSTER_CHECK_OK(checkSpec(spec, group.size()));
  MUSTER_TRY(ncclDataType_t type, ncclType(spec.dtype));
  const bool fp8 = spec.dtype == Dtype::kFp8E4m3 || spec.dtype == Dtype::kFp8E5m2;
  if (fp8 && reduces(spec.op) && group.device().computeCapability() < 90)
    return Error{ErrorCode::kUnsupported,
                 std::string("NCCL reduces ") + dtypeName(spec.dtype) + " from compute capability 9.0 on",
                 collectiveOpName(spec.op)};
  auto made = std::make_unique<NcclCollective>(group, spec, type, queued);
  MUSTER_CHECK_OK(made->allocate());
  return std::unique_ptr<Collective>(std::move(made));
}

}  // namespace muster::cuda
