// SPDX-License-Identifier: Apache-2.0
// Declaring the parameters of a case.
#include "plugins/train/params.h"

namespace muster::train {
namespace {

OptimizerKind optimizerNamed(const std::string& name) {
  return name == "adamw" ? OptimizerKind::kAdamW : OptimizerKind::kSgd;
}

/// Sizes of images as data sets have them by nature.
int64_t naturalSize(const DatasetSpec& data) {
  if (data.imageSize > 0) return data.imageSize;
  return data.mode == "synthetic" || data.mode == "imagenet" ? 224 : 32;
}

}  // namespace

void Params::declareCommon(sdk::ParamTable& param) {
  param("model", model.name, "resnet18", {"resnet18", "resnet50", "transformer"},
        "resnet50 is v1.5; transformer is a decoder-only language model");
  param("batch_size", model.batch, 32, {1, 65536}, "samples of one rank's step");
  param("num_classes", model.classes, 1000, {2, 1000000}, "outputs of a ResNet");
  param("image_size", data.imageSize, 0, {0, 4096},
        "pixels a side; 0: 224 for synthetic and imagenet, 32 for the other data");
  param("width", model.width, 64, {1, 4096}, "channels of a ResNet's first stage");
  param("vocabulary", model.vocabulary, 32000, {2, 10000000}, "tokens of the transformer");
  param("dimension", model.dimension, 1024, {1, 131072}, "width of the transformer");
  param("heads", model.heads, 16, {1, 1024}, "attention heads; they divide dimension");
  param("layers", model.layers, 12, {1, 1000}, "transformer blocks");
  param("feed_forward", model.feedForward, 4096, {1, 1000000}, "width of the hidden layer");
  param("sequence", model.sequence, 512, {1, 1000000}, "tokens of a sample");
  param("dtype", program.dtype, "f32", {"f32", "tf32", "bf16"}, dtypeFromName,
        "of activations and products; parameters stay f32. Skipped where the device has it not");
  param("optimizer", optimizer.kind, "sgd", {"sgd", "adamw"}, optimizerNamed, "update rule");
  param("learning_rate", learningRate, 0.01, {0, 100}, "of every step");
  param("momentum", optimizer.momentum, 0.9, {0, 1}, "of sgd");
  param("weight_decay", optimizer.weightDecay, 0, {0, 10},
        "of all parameters; of a transformer's weights only");
  param("bucket_bytes", bucketBytes, "B", "25 MiB", {"4 B", "64 GiB"},
        "gradients that are summed over the ranks at once, while the backward pass goes on");
  param("interface", interface, "", "network interface or address of the group; empty: the backend's choice");
  param("group_timeout", groupTimeout, "s", "60s", {"1s", "1h"},
        "to form the group, and for each call in it");
}

/// The data set tells the size of its images, unless the plan does.
Status Params::complete() {
  optimizer.decayAll = !model.readsTokens();
  data.classes = static_cast<int>(model.readsTokens() ? model.vocabulary : model.classes);
  data.tokens = model.readsTokens() ? static_cast<int>(model.sequence) : 0;
  model.imageSize = naturalSize(data);
  return {};
}

void TrainingParams::declare(sdk::ParamTable& param) {
  declareCommon(param);
  param("data_mode", data.mode, "synthetic",
        {"synthetic", "fashion-mnist", "cifar10", "cifar100", "imagenet"},
        "which data; imagenet: a folder of JPEGs a class");
  param("data_dir", data.folder, "",
        "folder of the data; empty: where Debian's dataset-fashion-mnist puts it");
  param("download", download, false,
        "fetch what is missing (fashion-mnist, cifar10, cifar100) into data_dir, and verify what is there");
  param("download_url", downloadUrl, "", "https:// folder of a mirror; empty: the publisher's");
  param("samples", data.limit, 0, {0, 4000000000}, "of the training data, spread over all; 0: all");
  param("test_samples", testSamples, 0, {0, 4000000000}, "of the test data; 0: all");
  param("augment", augment, false, "random crops and mirror images");
  param("loader_workers", workers, 2, {1, 256}, "threads of one rank that read data");
  param("prefetch", prefetch, 4, {1, 1024}, "batches read ahead");
  param("warmup_iterations", warmup, 50, {0, 1000000000}, "steps before the timed ones");
  param("active_iterations", active, 100, {1, 1000000000}, "steps that are timed");
  param("epochs", epochs, 0, {0, 100000},
        "passes over the data in place of active_iterations; the test data is judged after each");
  param("solo_iterations", soloIterations, 10, {0, 100000},
        "steps without communication, and of rank 0 alone, that the shares are computed from; 0: none");
  param("deterministic", program.deterministic, false, "bitwise the same from run to run");
}

void DeterminismParams::declare(sdk::ParamTable& param) {
  declareCommon(param);
  param("iterations", active, 10, {1, 1000000}, "steps of each of the two runs");
}

Status DeterminismParams::complete() {
  warmup = 0;
  program.deterministic = true;
  return Params::complete();
}

}  // namespace muster::train
