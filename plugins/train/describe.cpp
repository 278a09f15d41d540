// SPDX-License-Identifier: Apache-2.0
// What the train plugin offers, as plugins/abi/README.md describes it.
#include "plugins/train/describe.h"

#include <string>

namespace muster::train {
namespace {

/// Parameters that both tests have.
constexpr const char* kModelParams = R"json(
    {"name": "model", "type": "string", "default": "resnet18", "one_of": ["resnet18", "resnet50", "transformer"],
     "summary": "resnet50 is v1.5; transformer is a decoder-only language model"},
    {"name": "batch_size", "type": "int", "default": 32, "min": 1, "max": 65536, "summary": "samples of one rank's step"},
    {"name": "num_classes", "type": "int", "default": 1000, "min": 2, "max": 1000000, "summary": "outputs of a ResNet"},
    {"name": "image_size", "type": "int", "default": 0, "min": 0, "max": 4096,
     "summary": "pixels a side; 0: 224 for synthetic and imagenet, 32 for the other data"},
    {"name": "width", "type": "int", "default": 64, "min": 1, "max": 4096, "summary": "channels of a ResNet's first stage"},
    {"name": "vocabulary", "type": "int", "default": 32000, "min": 2, "max": 10000000, "summary": "tokens of the transformer"},
    {"name": "dimension", "type": "int", "default": 1024, "min": 1, "max": 131072, "summary": "width of the transformer"},
    {"name": "heads", "type": "int", "default": 16, "min": 1, "max": 1024, "summary": "attention heads; they divide dimension"},
    {"name": "layers", "type": "int", "default": 12, "min": 1, "max": 1000, "summary": "transformer blocks"},
    {"name": "feed_forward", "type": "int", "default": 4096, "min": 1, "max": 1000000, "summary": "width of the hidden layer"},
    {"name": "sequence", "type": "int", "default": 512, "min": 1, "max": 1000000, "summary": "tokens of a sample"},
    {"name": "dtype", "type": "string", "default": "f32", "one_of": ["f32", "tf32", "bf16"],
     "summary": "of activations and products; parameters stay f32. Skipped where the device has it not"},
    {"name": "optimizer", "type": "string", "default": "sgd", "one_of": ["sgd", "adamw"], "summary": "update rule"},
    {"name": "learning_rate", "type": "float", "default": 0.01, "min": 0, "max": 100, "summary": "of every step"},
    {"name": "momentum", "type": "float", "default": 0.9, "min": 0, "max": 1, "summary": "of sgd"},
    {"name": "weight_decay", "type": "float", "default": 0, "min": 0, "max": 10, "summary": "of all parameters; of a transformer's weights only"},
    {"name": "bucket_bytes", "type": "quantity", "unit": "B", "default": "25 MiB", "min": "4 B", "max": "64 GiB",
     "summary": "gradients that are summed over the ranks at once, while the backward pass goes on"},
    {"name": "interface", "type": "string", "default": "", "summary": "network interface or address of the group; empty: the backend's choice"},
    {"name": "group_timeout", "type": "quantity", "unit": "s", "default": "60s", "min": "1s", "max": "1h",
     "summary": "to form the group, and for each call in it"})json";

std::string text() {
  return std::string(R"json({"tests": [
{
  "name": "training",
  "summary": "Real training steps of one model over all ranks: rate, loss, communication, agreement of gradients",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "node", "cluster"],
  "params": [)json") +
         std::string(kModelParams) + R"json(,
    {"name": "data_mode", "type": "string", "default": "synthetic",
     "one_of": ["synthetic", "fashion-mnist", "cifar10", "cifar100", "imagenet"], "summary": "which data; imagenet: a folder of JPEGs a class"},
    {"name": "data_dir", "type": "string", "default": "",
     "summary": "folder of the data; empty: where Debian's dataset-fashion-mnist puts it"},
    {"name": "download", "type": "bool", "default": false, "summary": "fetch what is missing (fashion-mnist, cifar10, cifar100) into data_dir, and verify what is there"},
    {"name": "download_url", "type": "string", "default": "", "summary": "https:// folder of a mirror; empty: the publisher's"},
    {"name": "samples", "type": "int", "default": 0, "min": 0, "max": 4000000000, "summary": "of the training data, spread over all; 0: all"},
    {"name": "test_samples", "type": "int", "default": 0, "min": 0, "max": 4000000000, "summary": "of the test data; 0: all"},
    {"name": "augment", "type": "bool", "default": false, "summary": "random crops and mirror images"},
    {"name": "loader_workers", "type": "int", "default": 2, "min": 1, "max": 256, "summary": "threads of one rank that read data"},
    {"name": "prefetch", "type": "int", "default": 4, "min": 1, "max": 1024, "summary": "batches read ahead"},
    {"name": "warmup_iterations", "type": "int", "default": 50, "min": 0, "max": 1000000000, "summary": "steps before the timed ones"},
    {"name": "active_iterations", "type": "int", "default": 100, "min": 1, "max": 1000000000, "summary": "steps that are timed"},
    {"name": "epochs", "type": "int", "default": 0, "min": 0, "max": 100000,
     "summary": "passes over the data in place of active_iterations; the test data is judged after each"},
    {"name": "solo_iterations", "type": "int", "default": 10, "min": 0, "max": 100000,
     "summary": "steps without communication, and of rank 0 alone, that the shares are computed from; 0: none"},
    {"name": "deterministic", "type": "bool", "default": false, "summary": "bitwise the same from run to run"}
  ],
  "metrics": [
    {"name": "throughput", "unit": "samples/s", "direction": "higher", "leader": true, "series": "runs",
     "summary": "of the whole group, each sample counted once: all batches over the slowest rank's time, per step"},
    {"name": "rank_throughput", "unit": "samples/s", "direction": "higher", "informational": true, "summary": "of one rank, per step"},
    {"name": "step_time", "unit": "s", "direction": "lower", "informational": true, "summary": "from asking for data to the updated parameters"},
    {"name": "step_time_drift", "unit": "ratio", "direction": "lower", "informational": true,
     "summary": "how much longer the last fifth of the steps took than the first"},
    {"name": "model_flops", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}", "informational": true,
     "summary": "operations of the model's matrix products, forward and backward, over the step's time"},
    {"name": "model_flop_utilisation", "unit": "ratio", "direction": "higher", "informational": true, "optional": true,
     "summary": "the same as a share of the device's own peak"},
    {"name": "data_wait_share", "unit": "ratio", "direction": "lower", "informational": true, "summary": "of the steps' time: waiting for data"},
    {"name": "compute_time", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "of a step without communication"},
    {"name": "communication_time", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "of a step's sums of gradients without work beside them"},
    {"name": "communication_share", "unit": "ratio", "direction": "lower", "informational": true, "optional": true,
     "summary": "of a step: what communication adds to it"},
    {"name": "communication_overlap", "unit": "ratio", "direction": "higher", "informational": true, "optional": true,
     "summary": "of communication: what the backward pass hides"},
    {"name": "scaling_efficiency", "unit": "ratio", "direction": "higher", "informational": true, "optional": true, "leader": true,
     "summary": "step time of rank 0 alone over the step time of all"},
    {"name": "loss", "unit": "ratio", "direction": "lower", "informational": true, "leader": true, "summary": "mean over the ranks, each step"},
    {"name": "loss_start", "unit": "ratio", "direction": "lower", "informational": true, "leader": true, "summary": "mean of the first tenth of the steps"},
    {"name": "loss_end", "unit": "ratio", "direction": "lower", "informational": true, "leader": true, "summary": "mean of the last tenth"},
    {"name": "loss_fell", "unit": "bool", "direction": "higher", "leader": true, "optional": true,
     "summary": "whether the loss ended below its start; of runs of at least 20 steps",
     "standing": {"min": 1, "source": "Muster: the synthetic data has something to learn, and gradient descent lowers its loss within 20 steps",
                  "remedy": "The devices compute wrong gradients, or the learning rate does not fit the model: run the determinism test, and the plan's defaults"}},
    {"name": "test_accuracy", "unit": "ratio", "direction": "higher", "informational": true, "optional": true, "leader": true,
     "summary": "share of the test data that is classified rightly after the last epoch"},
    {"name": "epoch_accuracy", "unit": "ratio", "direction": "higher", "informational": true, "optional": true, "leader": true,
     "summary": "the same after each epoch"},
    {"name": "diverged_ranks", "unit": "count", "direction": "lower", "leader": true,
     "summary": "ranks whose gradients differ from the others' after the same sum",
     "standing": {"max": 0, "source": "all ranks get the same bits from one all-reduce",
                  "remedy": "The named rank's device or link corrupts data silently: take it out of service; run collective's sweep and compute's gemm there"}},
    {"name": "first_diverged", "unit": "text", "informational": true, "optional": true, "summary": "which ranks, on which nodes"},
    {"name": "gradient_checks", "unit": "count", "informational": true, "leader": true, "summary": "how often gradients were compared"},
    {"name": "parameters", "unit": "count", "informational": true, "leader": true, "summary": "trained values of the model"},
    {"name": "device_memory", "unit": "B", "direction": "lower", "informational": true, "summary": "allocated on the device for the training"},
    {"name": "process_memory", "unit": "B", "direction": "lower", "informational": true, "summary": "largest resident memory of the rank's process"},
    {"name": "implementation", "unit": "text", "informational": true, "summary": "libraries, kernels and threads that did the work"},
    {"name": "communication", "unit": "text", "informational": true, "leader": true, "summary": "library and transport of the group; none: one rank"}
  ]
},
{
  "name": "determinism",
  "summary": "The same training twice: every loss, gradient and parameter must come out in the same bits, and alike on all ranks",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["device", "node", "cluster"],
  "params": [)json" +
         std::string(kModelParams) + R"json(,
    {"name": "iterations", "type": "int", "default": 10, "min": 1, "max": 1000000, "summary": "steps of each of the two runs"}
  ],
  "metrics": [
    {"name": "loss_mismatches", "unit": "count", "direction": "lower", "summary": "steps whose loss differs between the runs",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the device out of service"}},
    {"name": "gradient_mismatches", "unit": "count", "direction": "lower", "summary": "steps whose gradients differ between the runs",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the device out of service"}},
    {"name": "parameter_mismatches", "unit": "count", "direction": "lower", "summary": "1: the parameters differ at the end",
     "standing": {"max": 0, "source": "the same operations in the same order give the same bits",
                  "remedy": "Results are not reproducible between runs: silent data corruption; take the device out of service"}},
    {"name": "first_mismatch", "unit": "text", "informational": true, "optional": true, "summary": "the first step that differs, and its bits"},
    {"name": "diverged_ranks", "unit": "count", "direction": "lower", "leader": true,
     "summary": "ranks whose gradients differ from the others' after the same sum",
     "standing": {"max": 0, "source": "all ranks get the same bits from one all-reduce",
                  "remedy": "The named rank's device or link corrupts data silently: take it out of service; run collective's sweep and compute's gemm there"}},
    {"name": "first_diverged", "unit": "text", "informational": true, "optional": true, "summary": "which ranks, on which nodes"},
    {"name": "final_parameters", "unit": "text", "informational": true, "leader": true, "summary": "hash of the parameters at the end: equal for equal seeds, ranks and machines"}
  ]
}
]})json";
}

}  // namespace

const char* describe() {
  static const std::string kText = text();
  return kText.c_str();
}

}  // namespace muster::train
