// SPDX-License-Identifier: Apache-2.0
// Test "inference": the same batch through the same model again and again, timed. Every pass must give the
// same bits, and logits that agree with those in f32.
#include <fmt/format.h>

#include <cstring>

#include "plugins/train/figures.h"
#include "plugins/train/teller.h"
#include "plugins/train/trainer.h"
#include "runner/core/statistics.h"

namespace muster::train {
namespace {

/// Passes by which a model that was never trained finds the statistics of its normalisations: with PyTorch's
/// momentum of 0.1 nine tenths of them are then the batch's. Without them activations grow from block to
/// block until f16 cannot hold them.
constexpr int kCalibrationPasses = 22;

struct Passes {
  std::vector<double> seconds;
  uint64_t mismatches = 0;
  std::string first;  ///< the first mismatch in words
};

class Inference {
 public:
  Inference(const Bench& bench, const InferenceParams& params, uint64_t seed, Model model)
      : bench_(bench), params_(params), seed_(seed), model_(std::move(model)) {}

  Status run() {
    MUSTER_CHECK_OK(readBatchOnce());
    MUSTER_TRY(auto program, compile(params_.program));  // first: it may be skipped
    MUSTER_TRY(const std::vector<float> expected, expectedLogits());
    MUSTER_CHECK_OK(setStatistics(*program));
    Passes passes;
    MUSTER_TRY(const std::vector<float> logits, time(*program, passes));
    return report(*program, passes, expected, logits);
  }

 private:
  Status readBatchOnce() {
    if (!bench_.nn.readsInputs()) return {};
    MUSTER_TRY(data_, openDataset(params_.data));
    LoaderSpec spec;
    spec.sampler.batch = static_cast<int>(params_.model.batch);
    spec.sampler.seed = seed_;
    spec.batches = 1;
    MUSTER_TRY(loader_, Loader::start(*data_, spec));
    MUSTER_TRY(batch_, loader_->next());
    return {};
  }

  [[nodiscard]] Status goOn() const {
    if (bench_.host.cancelled()) return Error{ErrorCode::kTimeout, "inference was cancelled", ""};
    return {};
  }

  Result<std::unique_ptr<Program>> compile(const ProgramOptions& options) {
    MUSTER_TRY(auto program, bench_.nn.compile(model_.network, options));
    MUSTER_CHECK_OK(initialise(params_.model, seed_, *program));
    if (batch_ != nullptr) MUSTER_CHECK_OK(writeBatch(model_, *batch_, *program));
    return program;
  }

  /// The logits in f32; keeps the statistics for the program under test.
  Result<std::vector<float>> expectedLogits() {
    MUSTER_TRY(auto program, compile({Dtype::kF32, true}));
    for (int i = 0; i < kCalibrationPasses; ++i) {
      MUSTER_CHECK_OK(goOn());
      MUSTER_CHECK_OK(program->forward(Pass::kTraining));
    }
    if (batch_ != nullptr) {
      for (size_t i = 0; i < model_.network.statistics().size(); ++i) {
        MUSTER_TRY(std::vector<float> values, program->readStatistics(static_cast<int>(i)));
        statistics_.push_back(std::move(values));
      }
    }
    MUSTER_CHECK_OK(program->forward(Pass::kEvaluation));
    return program->readTensor(model_.logits);
  }

  Status setStatistics(Program& program) {
    for (size_t i = 0; i < statistics_.size(); ++i)
      MUSTER_CHECK_OK(program.writeStatistics(static_cast<int>(i), statistics_[i]));
    return {};
  }

  /// The logits of the first pass; warm-up counts for mismatches, not for time.
  Result<std::vector<float>> time(Program& program, Passes& passes) {
    const int all = params_.warmup + params_.active;
    std::vector<float> first;
    for (int i = 0; i < all; ++i) {
      MUSTER_CHECK_OK(goOn());
      MUSTER_TRY(const double seconds,
                 bench_.device.time([&] { return program.forward(Pass::kEvaluation); }));
      if (i >= params_.warmup) passes.seconds.push_back(seconds);
      MUSTER_TRY(std::vector<float> logits, program.readTensor(model_.logits));
      if (i == 0)
        first = std::move(logits);
      else
        note(first, logits, i, passes);
      bench_.host.progress(static_cast<double>(i + 1) / all,
                           fmt::format("{} pass {}", i < params_.warmup ? "warm-up" : "active", i + 1));
    }
    return first;
  }

  /// By bits: a NaN equals itself.
  static void note(const std::vector<float>& first, const std::vector<float>& logits, int pass,
                   Passes& passes) {
    if (std::memcmp(first.data(), logits.data(), first.size() * sizeof(float)) == 0) return;
    if (passes.mismatches++ > 0) return;
    size_t at = 0;
    while (std::memcmp(&first[at], &logits[at], sizeof(float)) == 0) ++at;
    passes.first = fmt::format("pass {}: logit {} of {} is {:a}, in the first pass {:a}", pass + 1, at,
                               first.size(), logits[at], first[at]);
  }

  Status report(const Program& program, const Passes& passes, const std::vector<float>& expected,
                const std::vector<float>& logits) const {
    const std::string dtype = dtypeName(params_.program.dtype);
    const double flops = model_.network.forwardFlops();
    const auto classes = static_cast<size_t>(model_.network.shape(model_.logits).back());
    Teller tell(bench_);
    tell.samples("inference_throughput", "samples/s",
                 ratesOf(static_cast<double>(params_.model.batch), passes.seconds))
        .samples("pass_time", "s", passes.seconds)
        .samples("model_flops", "FLOP/s", ratesOf(flops, passes.seconds))
        .number("mismatched_passes", "count", static_cast<double>(passes.mismatches))
        .number("device_memory", "B", static_cast<double>(program.memoryBytes()))
        .text("implementation", program.implementation());
    // f32 would be compared with itself.
    if (params_.program.dtype != Dtype::kF32)
      tell.number("output_error", "number", outputError(expected, logits, classes, params_.program.dtype));
    const auto& peaks = bench_.device.info().peaks;
    if (const auto peak = peaks.find("flops." + dtype); peak != peaks.end())
      tell.number("model_flop_utilisation", "ratio", flops / medianOf(passes.seconds) / peak->second);
    if (!passes.first.empty()) {
      bench_.host.log(MUSTER_LOG_ERROR, passes.first);
      tell.text("first_mismatch", passes.first);
    }
    return tell.status();
  }

  const Bench& bench_;
  const InferenceParams& params_;
  uint64_t seed_;
  Model model_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Loader> loader_;
  const Batch* batch_ = nullptr;  ///< the loader's; null where the device reads no inputs
  std::vector<std::vector<float>> statistics_;
};

}  // namespace

Status runInference(const Bench& bench, const Json& json, uint64_t seed) {
  MUSTER_TRY(InferenceParams params, sdk::readParams<InferenceParams>(json));
  params.data.seed = seed;
  MUSTER_TRY(Model model, buildModel(params.model));
  return Inference(bench, params, seed, std::move(model)).run();
}

}  // namespace muster::train
