// SPDX-License-Identifier: Apache-2.0
// Asks cuDNN's heuristics for engines and makes plans of them.
#include "kernels/cuda/dnn/library/dnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr size_t kMostConfigurations = 64;
constexpr uint64_t kMostWorkspace = uint64_t{512} << 20;

/// What an engine does to numbers.
struct Notes {
  std::array<cudnnBackendNumericalNote_t, 16> all{};
  int64_t count = 0;
  [[nodiscard]] bool has(cudnnBackendNumericalNote_t note) const {
    const auto end = all.begin() + std::min<int64_t>(count, all.size());
    return std::find(all.begin(), end, note) != end;
  }
};
Result<Notes> notesOf(const Descriptor& engine) {
  Notes notes;
  MUSTER_TRY(notes.count, engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     notes.all.data(), notes.all.size()));
  return notes;
}

constexpr size_t kMostKnobs = 64;

Result<std::string> knobsOf(const Descriptor& configuration) {
  std::array<Descriptor, kMostKnobs> choices;
  std::array<cudnnBackendDescriptor_t, kMostKnobs> raw{};
  for (size_t i = 0; i < choices.size(); ++i) {
    MUSTER_CHECK_OK(choices[i].make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    raw[i] = choices[i].raw();
  }
  MUSTER_TRY(const int64_t count, configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), kMostKnobs));
  std::vector<std::string> set;
  for (size_t i = 0; i < std::min(static_cast<size_t>(count), kMostKnobs); ++i) {
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    MUSTER_CHECK_OK(choices[i].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type));
    MUSTER_CHECK_OK(choices[i].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value));
    set.push_back(fmt::format("k{}={}", static_cast<int>(type), value));
  }
  return join(set, " ");
}

class PlanSearch {
 public:
  PlanSearch(const DnnTarget& target, const Descriptor& graph, size_t most)
      : target_(target), graph_(graph), most_(most) {}

  Result<std::vector<DnnPlan>> run() {
    note(trySuggestions(CUDNN_HEUR_MODE_A));
    if (found_.empty() && most_ > 1 && target_.dtype != Dtype::kF32) note(tryTensorCores());
    if (found_.empty()) note(trySuggestions(CUDNN_HEUR_MODE_FALLBACK));
    if (!found_.empty()) return std::move(found_);
    if (!failure_.ok()) return std::move(failure_).error();
    return Error{ErrorCode::kUnsupported, reason(), ""};
  }

 private:
  Status trySuggestions(cudnnBackendHeurMode_t mode);
  Status tryTensorCores();
  Status tryConfiguration(const Descriptor& configuration);
  [[nodiscard]] bool keepsPromises(const Notes& notes) const;
  /// Why there is no plan, where nothing failed.
  [[nodiscard]] std::string reason() const;
  /// Keeps the failure that explains most: the first that is not cuDNN's "not supported", else the first.
  void note(Status status) {
    if (status.ok()) return;
    const bool louder = !failure_.ok() && failure_.error().code == ErrorCode::kUnsupported &&
                        status.error().code != ErrorCode::kUnsupported;
    if (failure_.ok() || louder) failure_ = std::move(status);
  }

  const DnnTarget& target_;
  const Descriptor& graph_;
  const size_t most_;
  std::vector<DnnPlan> found_;
  size_t suggested_ = 0;
  Status failure_;
};

std::string PlanSearch::reason() const {
  if (suggested_ == 0) {
    char detail[512] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    return detail[0] == '\0' ? "cuDNN has no engine for it"
                             : std::string("cuDNN has no engine for it: ") + detail;
  }
  return fmt::format("of cuDNN's {} configurations of engines none sums in f32{}{} in {} MiB of workspace",
                     suggested_, target_.dtype == Dtype::kF32 ? " without tensor cores" : "",
                     target_.deterministic ? ", gives the same bits every time" : "", kMostWorkspace >> 20);
}

bool PlanSearch::keepsPromises(const Notes& notes) const {
  if (notes.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (notes.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  if (target_.deterministic && notes.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  return target_.dtype != Dtype::kF32 || !notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

/// The handle, or the device properties in its place.
Status setTarget(Descriptor& plan, const DnnTarget& target) {
#if CUDNN_VERSION >= 90800
  if (target.device != nullptr) return plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
#endif
  return plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &target.handle);
}

Status PlanSearch::tryConfiguration(const Descriptor& configuration) {
  Descriptor engine;
  MUSTER_CHECK_OK(engine.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t raw = engine.raw();
  MUSTER_CHECK_OK(configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw));
  MUSTER_TRY(const Notes notes, notesOf(engine));
  if (!keepsPromises(notes)) return {};
  DnnPlan made;
  MUSTER_CHECK_OK(engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &made.engine));
  MUSTER_TRY(made.knobs, knobsOf(configuration));
  MUSTER_CHECK_OK(made.plan.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  MUSTER_CHECK_OK(setTarget(made.plan, target_));
  MUSTER_CHECK_OK(made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration));
  MUSTER_CHECK_OK(made.plan.finalize());
  int64_t bytes = 0;
  MUSTER_CHECK_OK(made.plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes));
  made.workspaceBytes = static_cast<uint64_t>(bytes);
  if (made.workspaceBytes <= kMostWorkspace) found_.push_back(std::move(made));
  return {};
}

Status PlanSearch::trySuggestions(cudnnBackendHeurMode_t mode) {
  Descriptor heuristics;
  MUSTER_CHECK_OK(heuristics.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  MUSTER_CHECK_OK(heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_));
  MUSTER_CHECK_OK(heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode));
#if CUDNN_VERSION >= 90800
  if (target_.device != nullptr)
    MUSTER_CHECK_OK(heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target_.device));
#endif
  MUSTER_CHECK_OK(heuristics.finalize());
  std::array<Descriptor, kMostConfigurations> configurations;
  std::array<cudnnBackendDescriptor_t, kMostConfigurations> raw{};
  for (size_t i = 0; i < configurations.size(); ++i) {
    MUSTER_CHECK_OK(configurations[i].make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw[i] = configurations[i].raw();
  }
  MUSTER_TRY(const int64_t count, heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                 raw.data(), kMostConfigurations));
  const size_t usable = std::min(static_cast<size_t>(count), kMostConfigurations);
  suggested_ += usable;
  for (size_t i = 0; i < usable && found_.size() < most_; ++i) note(tryConfiguration(configurations[i]));
  return {};
}

/// The heuristics of cuDNN 9.19 suggest nothing for most convolutions in bf16 on a B300, though engines of
/// older GPUs take them; the fallback mode's engine has no tensor cores. Engines that are compiled when they
/// are planned come last and are not reached: they take a second each.
Status PlanSearch::tryTensorCores() {
  int64_t count = 0;
  MUSTER_CHECK_OK(graph_.get(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, &count));
  for (int64_t index = 0; index < count && found_.size() < most_; ++index) {
    Descriptor engine, configuration;
    MUSTER_CHECK_OK(engine.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
    MUSTER_CHECK_OK(engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_));
    MUSTER_CHECK_OK(engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &index));
#if CUDNN_VERSION >= 90800
    if (target_.device != nullptr) MUSTER_CHECK_OK(engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target_.device));
#endif
    if (!engine.finalize().ok()) continue;  // it does not take this graph
    MUSTER_TRY(const Notes notes, notesOf(engine));
    if (!notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) continue;
    MUSTER_CHECK_OK(configuration.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    MUSTER_CHECK_OK(configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
    MUSTER_CHECK_OK(configuration.finalize());
    note(tryConfiguration(configuration));
  }
  return {};
}

}  // namespace

std::string DnnPlan::name() const {
  return fmt::format("engine {}{}", engine, knobs.empty() ? "" : " (" + knobs + ")");
}

Result<std::vector<DnnPlan>> findPlans(const DnnTarget& target, const Descriptor& graph, size_t most) {
  return PlanSearch(target, graph, most).run();
}

}  // namespace muster::cuda
