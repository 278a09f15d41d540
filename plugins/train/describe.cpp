// SPDX-License-Identifier: Apache-2.0
// What the train plugin offers: JSON as plugins/abi/README.md describes it, without the parameters.
#include "plugins/train/params.h"
#include "plugins/train/tests.h"

namespace muster::train {
namespace {

constexpr const char* kTrainingTest = R"json({
  "name": "training",
  "summary": "Real training steps of one model over all ranks: rate, loss, communication, agreement of gradients",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "node", "cluster"], "group": true,
  "metrics": [
    {"name": "throughput", "unit": "samples/s", "direction": "higher", "leader": true, "series": "runs",
     "summary": "rate of the whole group in each step: all batches divided by the slowest rank's time",
     "remedy": "Compare clocks and power with the peers (nvidia-smi -q -d PERFORMANCE), and the CPU cores near this GPU"},
    {"name": "rank_throughput", "unit": "samples/s", "direction": "higher", "informational": true, "summary": "rate of one rank in each step",
     "remedy": "Compare clocks and power with the peers (nvidia-smi -q -d PERFORMANCE), and the CPU cores near this GPU"},
    {"name": "step_time", "unit": "s", "direction": "lower", "informational": true, "summary": "duration of a step, from the request for data to the updated parameters"},
    {"name": "step_time_drift", "unit": "ratio", "direction": "lower", "informational": true,
     "summary": "relative increase in step time from the first to the last fifth of the steps",
     "remedy": "Training slows down over time: check temperature, throttle reasons and free host memory in the telemetry"},
    {"name": "model_flops", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}", "informational": true,
     "summary": "operations of the model's matrix products, forward and backward, divided by step time",
     "remedy": "Compare with the GEMM and bandwidth stages: if those pass, check clocks and power in the telemetry, and the CPU that feeds the GPU"},
    {"name": "model_flop_utilisation", "unit": "ratio", "direction": "higher", "informational": true, "optional": true,
     "summary": "model_flops as a share of the device's peak"},
    {"name": "data_wait_share", "unit": "ratio", "direction": "lower", "informational": true, "summary": "share of step time spent waiting for data"},
    {"name": "compute_time", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "duration of a step without communication"},
    {"name": "communication_time", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "duration of a step's gradient reductions with no computation at the same time"},
    {"name": "communication_share", "unit": "ratio", "direction": "lower", "informational": true, "optional": true,
     "summary": "share of step time added by communication"},
    {"name": "communication_overlap", "unit": "ratio", "direction": "higher", "informational": true, "optional": true,
     "summary": "share of communication hidden by the backward pass"},
    {"name": "scaling_efficiency", "unit": "ratio", "direction": "higher", "informational": true, "optional": true, "leader": true,
     "summary": "step time of rank 0 alone divided by the step time of all ranks"},
    {"name": "loss", "unit": "number", "direction": "lower", "informational": true, "leader": true, "summary": "loss of each step, mean over the ranks"},
    {"name": "loss_start", "unit": "number", "direction": "lower", "informational": true, "leader": true, "summary": "mean loss of the first tenth of the steps"},
    {"name": "loss_end", "unit": "number", "direction": "lower", "informational": true, "leader": true, "summary": "mean loss of the last tenth of the steps"},
    {"name": "loss_fell", "unit": "bool", "direction": "higher", "leader": true, "optional": true,
     "summary": "whether loss_end is below loss_start; in runs of at least 20 steps",
     "standing": {"min": 1, "source": "Muster: the synthetic data has something to learn, and gradient descent lowers its loss within 20 steps",
                  "remedy": "The devices compute wrong gradients, or the learning rate does not fit the model: run the determinism test, and the plan's defaults"}},
    {"name": "test_accuracy", "unit": "ratio", "direction": "higher", "informational": true, "optional": true, "leader": true,
     "summary": "share of the test data classified correctly after the last epoch"},
    {"name": "epoch_accuracy", "unit": "ratio", "direction": "higher", "informational": true, "optional": true, "leader": true,
     "summary": "test accuracy after each epoch"},
    {"name": "diverged_ranks", "unit": "count", "direction": "lower", "leader": true,
     "summary": "ranks whose gradients or parameters differ from the others' after the same reductions",
     "standing": {"max": 0, "source": "all ranks get the same bits from one all-reduce",
                  "remedy": "A link or rank corrupts data silently on its way to the ranks that diverged_first_fault names: run collective's sweep, and compute's gemm there"}},
    {"name": "diverged_first_fault", "unit": "text", "informational": true, "optional": true, "summary": "which ranks differ, on which nodes"},
    {"name": "gradient_checks", "unit": "count", "informational": true, "leader": true, "summary": "number of gradient comparisons"},
    {"name": "parameters", "unit": "count", "informational": true, "leader": true, "summary": "trained values of the model"},
    {"name": "device_memory", "unit": "B", "direction": "lower", "informational": true, "summary": "device memory allocated by the training"},
    {"name": "process_memory", "unit": "B", "direction": "lower", "informational": true, "summary": "largest resident memory of the rank's process"},
    {"name": "implementation", "unit": "text", "informational": true, "summary": "libraries, kernels and threads used"},
    {"name": "communication", "unit": "text", "informational": true, "leader": true, "summary": "library and transport of the group; none: one rank"}
  ]
})json";

constexpr const char* kDeterminismTest = R"json({
  "name": "determinism",
  "summary": "The same training twice: every loss, gradient and parameter must be bitwise identical, on all ranks",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "node", "cluster"], "group": true,
  "metrics": [
    {"name": "loss_mismatches", "unit": "count", "direction": "lower", "summary": "steps whose loss differs between the runs",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the rank that first_fault names out of service, or find the link with collective's sweep"}},
    {"name": "gradient_mismatches", "unit": "count", "direction": "lower", "summary": "steps whose gradients differ between the runs",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the rank that first_fault names out of service, or find the link with collective's sweep"}},
    {"name": "parameter_mismatches", "unit": "count", "direction": "lower", "summary": "1 if the parameters differ at the end, else 0",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the rank that first_fault names out of service, or find the link with collective's sweep"}},
    {"name": "first_fault", "unit": "text", "informational": true, "optional": true,
     "summary": "the first step that differs, its bits, and whether this rank's own results or only the sums over the ranks differ"},
    {"name": "diverged_ranks", "unit": "count", "direction": "lower", "leader": true,
     "summary": "ranks whose gradients or parameters differ from the others' after the same reductions",
     "standing": {"max": 0, "source": "all ranks get the same bits from one all-reduce",
                  "remedy": "A link or rank corrupts data silently on its way to the ranks that diverged_first_fault names: run collective's sweep, and compute's gemm there"}},
    {"name": "diverged_first_fault", "unit": "text", "informational": true, "optional": true, "summary": "which ranks differ, on which nodes"},
    {"name": "final_parameters", "unit": "text", "informational": true, "leader": true, "summary": "hash of the parameters at the end: equal for equal seeds, ranks and machines"}
  ]
})json";

constexpr const char* kInferenceTest = R"json({
  "name": "inference",
  "summary": "One batch through one model again and again: rate, whether every pass gives the same bits, and whether the results agree with f32 within rounding",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device"], "group": false,
  "metrics": [
    {"name": "inference_throughput", "unit": "samples/s", "direction": "higher", "series": "runs",
     "summary": "rate of each forward pass over a batch that is in the device's memory",
     "remedy": "Compare clocks and power with the peers (nvidia-smi -q -d PERFORMANCE)"},
    {"name": "pass_time", "unit": "s", "direction": "lower", "informational": true, "summary": "duration of a forward pass over one batch"},
    {"name": "model_flops", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}", "informational": true,
     "summary": "operations of the model's matrix products, forward only, divided by pass time",
     "remedy": "Compare with the GEMM and bandwidth stages: if those pass, check clocks and power in the telemetry"},
    {"name": "model_flop_utilisation", "unit": "ratio", "direction": "higher", "informational": true, "optional": true,
     "summary": "model_flops as a share of the device's peak"},
    {"name": "mismatched_passes", "unit": "count", "direction": "lower", "summary": "passes, warm-up included, whose logits differ from the first pass's in any bit",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible from pass to pass: silent data corruption; take the device out of service"}},
    {"name": "first_mismatch", "unit": "text", "informational": true, "optional": true, "summary": "the first pass that differs, and the first logit"},
    {"name": "output_error", "unit": "number", "direction": "lower", "optional": true,
     "summary": "difference between the logits of a sample and those of the same model in f32 on this device, relative to these (both as Euclidean norms), in rounding errors of the type (2^-11 for f16 and tf32, 2^-8 for bf16); of the worst sample. 1e9 where a logit is no number; not in f32",
     "standing": {"max": 50, "source": "Muster: rounding of a healthy device adds up to about ten of a type's errors (ResNet-50 in bf16 on a CPU with AMX: 9, measured)",
                  "remedy": "The device computes wrong in this type, or in f32: run compute's gemm in both, and take it out of service if that fails too"}},
    {"name": "device_memory", "unit": "B", "direction": "lower", "informational": true, "summary": "device memory allocated by the model; the same model in f32 lies beside it"},
    {"name": "implementation", "unit": "text", "informational": true, "summary": "libraries, kernels and threads used"}
  ]
})json";

}  // namespace

std::string describe() {
  return sdk::describe({{kTrainingTest, sdk::describeParams<TrainingParams>()},
                        {kDeterminismTest, sdk::describeParams<DeterminismParams>()},
                        {kInferenceTest, sdk::describeParams<InferenceParams>()}});
}

}  // namespace muster::train
