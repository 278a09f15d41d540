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

void Params::declareImages(sdk::ParamTable& param) {
  param("batch_size", model.batch, 32, {1, 65536}, "samples of one rank's step or pass");
  param("num_classes", model.classes, 1000, {2, 1000000}, "number of classes that a ResNet distinguishes");
  param("image_size", data.imageSize, 0, {0, 4096},
        "image height and width in pixels; 0: 224 for synthetic and imagenet, 32 for the other data");
  param("width", model.width, 64, {1, 4096}, "channels of a ResNet's first stage");
}

void Params::declareTraining(sdk::ParamTable& param) {
  param("model", model.name, "resnet18", {"resnet18", "resnet50", "transformer"},
        "resnet50 is v1.5; transformer is a decoder-only language model");
  declareImages(param);
  param("vocabulary", model.vocabulary, 32000, {2, 10000000}, "vocabulary size of the transformer");
  param("dimension", model.dimension, 1024, {1, 131072}, "width of the transformer");
  param("heads", model.heads, 16, {1, 1024}, "attention heads; must divide dimension");
  param("layers", model.layers, 12, {1, 1000}, "transformer blocks");
  param("feed_forward", model.feedForward, 4096, {1, 1000000}, "width of the hidden layer");
  param("sequence", model.sequence, 512, {1, 1000000}, "tokens per sample");
  param("dtype", program.dtype, "f32", {"f32", "tf32", "bf16"}, dtypeFromName,
        "type of activations and products; parameters stay f32. Skipped if the device does not support it");
  param("optimizer", optimizer.kind, "sgd", {"sgd", "adamw"}, optimizerNamed,
        "how gradients change the parameters: sgd or adamw");
  param("learning_rate", learningRate, 0.01, {0, 100}, "learning rate of every step");
  param("momentum", optimizer.momentum, 0.9, {0, 1}, "momentum of sgd");
  param("weight_decay", optimizer.weightDecay, 0, {0, 10},
        "weight decay of all parameters; in a transformer of its weights only");
  param("bucket_bytes", bucketBytes, "B", "25 MiB", {"4 B", "64 GiB"},
        "size of the gradient buckets reduced while the backward pass continues");
  param("interface", interface, "", "network interface or address of the group; empty: the backend's choice");
  param("group_timeout", groupTimeout, "s", "60s", {"1s", "1h"},
        "timeout for forming the group and for each call in it");
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
  declareTraining(param);
  param("data_mode", data.mode, "synthetic",
        {"synthetic", "fashion-mnist", "cifar10", "cifar100", "imagenet"},
        "data set; imagenet: one directory of JPEGs per class");
  param("data_dir", data.folder, "",
        "directory of the data; empty: where Debian's dataset-fashion-mnist installs it");
  param("download", download, false,
        "download what is missing of the data set (fashion-mnist, cifar10, cifar100) into a directory of its "
        "own in data_dir, and use only that, verified");
  param("download_url", downloadUrl, "", "https:// URL of a mirror; empty: the publisher's");
  param("samples", data.limit, 0, {0, 4000000000},
        "training samples to use, spread over the whole set; 0: all");
  param("test_samples", testSamples, 0, {0, 4000000000}, "test samples to use; 0: all");
  param("augment", augment, false, "augment with random crops and mirror images");
  param("loader_workers", workers, 4, {1, 256}, "data loading threads per rank");
  param("prefetch", prefetch, 4, {1, 1024}, "batches to prefetch");
  param("warmup_iterations", warmup, 50, {0, 1000000000}, "untimed steps before timing");
  param("active_iterations", active, 100, {1, 1000000000}, "number of timed steps");
  param("epochs", epochs, 0, {0, 100000},
        "passes over the data, replaces active_iterations; test accuracy is measured after each");
  param("solo_iterations", soloIterations, 10, {0, 100000},
        "steps without communication and steps of rank 0 alone, from which the shares are computed; 0: none");
  param("deterministic", program.deterministic, false,
        "use only operations that give bitwise identical results in every run");
}

void DeterminismParams::declare(sdk::ParamTable& param) {
  declareTraining(param);
  param("iterations", active, 10, {1, 1000000}, "steps in each of the two runs");
}

Status DeterminismParams::complete() {
  warmup = 0;
  program.deterministic = true;
  return Params::complete();
}

void InferenceParams::declare(sdk::ParamTable& param) {
  param("model", model.name, "resnet50", {"resnet18", "resnet50"}, "resnet50 is v1.5");
  declareImages(param);
  param("dtype", program.dtype, "f32", {"f32", "tf32", "bf16", "f16"}, dtypeFromName,
        "type of activations and products. Skipped if the device does not support it");
  param("warmup_iterations", warmup, 50, {1, 1000000000}, "untimed passes before timing");
  param("active_iterations", active, 100, {1, 1000000000}, "number of timed passes");
}

Status InferenceParams::complete() {
  program.deterministic = true;
  return Params::complete();
}

}  // namespace muster::train
