// SPDX-License-Identifier: Apache-2.0
// Reading the parameters of a case.
#include "plugins/train/params.h"

namespace muster::train {
namespace {

void readModel(JsonReader& reader, ModelSpec& model) {
  reader.read("model", model.name);
  reader.read("batch_size", model.batch);
  reader.read("num_classes", model.classes);
  reader.read("width", model.width);
  reader.read("vocabulary", model.vocabulary);
  reader.read("dimension", model.dimension);
  reader.read("heads", model.heads);
  reader.read("layers", model.layers);
  reader.read("feed_forward", model.feedForward);
  reader.read("sequence", model.sequence);
}

Status readOptimizer(JsonReader& reader, Params& params) {
  std::string name;
  reader.read("optimizer", name);
  reader.read("learning_rate", params.learningRate);
  reader.read("momentum", params.optimizer.momentum);
  reader.read("weight_decay", params.optimizer.weightDecay);
  MUSTER_CHECK_OK(reader.status());
  params.optimizer.kind = name == "adamw" ? OptimizerKind::kAdamW : OptimizerKind::kSgd;
  params.optimizer.decayAll = !params.model.readsTokens();
  return {};
}

/// What both tests have. The data set tells the size of its images, unless the plan does.
Status readCommon(JsonReader& reader, Params& params) {
  std::string dtype;
  int imageSize = 0;
  readModel(reader, params.model);
  MUSTER_CHECK_OK(readOptimizer(reader, params));
  reader.read("dtype", dtype);
  reader.read("image_size", imageSize);
  reader.read("bucket_bytes", params.bucketBytes);
  reader.read("interface", params.interface);
  reader.read("group_timeout", params.groupTimeout);
  MUSTER_CHECK_OK(reader.status());
  MUSTER_TRY(params.program.dtype, dtypeFromName(dtype));
  params.data.imageSize = imageSize;
  params.data.classes =
      static_cast<int>(params.model.readsTokens() ? params.model.vocabulary : params.model.classes);
  params.data.tokens = params.model.readsTokens() ? static_cast<int>(params.model.sequence) : 0;
  return {};
}

/// Sizes of images as data sets have them by nature.
int64_t naturalSize(const DatasetSpec& data) {
  if (data.imageSize > 0) return data.imageSize;
  return data.mode == "synthetic" || data.mode == "imagenet" ? 224 : 32;
}

}  // namespace

Result<Params> readTrainingParams(const Json& json) {
  Params params;
  JsonReader reader(json, "params");
  MUSTER_CHECK_OK(readCommon(reader, params));
  reader.read("data_mode", params.data.mode);
  reader.read("data_dir", params.data.folder);
  reader.read("download", params.download);
  reader.read("download_url", params.downloadUrl);
  reader.read("samples", params.data.limit);
  reader.read("test_samples", params.testSamples);
  reader.read("augment", params.augment);
  reader.read("loader_workers", params.workers);
  reader.read("prefetch", params.prefetch);
  reader.read("warmup_iterations", params.warmup);
  reader.read("active_iterations", params.active);
  reader.read("epochs", params.epochs);
  reader.read("solo_iterations", params.soloIterations);
  reader.read("deterministic", params.program.deterministic);
  MUSTER_CHECK_OK(reader.status());
  params.model.imageSize = naturalSize(params.data);
  return params;
}

Result<Params> readDeterminismParams(const Json& json) {
  Params params;
  JsonReader reader(json, "params");
  MUSTER_CHECK_OK(readCommon(reader, params));
  reader.read("iterations", params.active);
  MUSTER_CHECK_OK(reader.status());
  params.warmup = 0;
  params.program.deterministic = true;
  params.model.imageSize = naturalSize(params.data);
  return params;
}

}  // namespace muster::train
