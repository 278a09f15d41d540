// SPDX-License-Identifier: Apache-2.0
// A decoder-only transformer.
#include "plugins/train/models/transformer.h"

namespace muster::train {
namespace {

Linear linear(const std::string& name, int64_t features) {
  Linear spec;
  spec.name = name;
  spec.features = features;
  return spec;
}

/// x + attention(norm(x)), then x + feedForward(norm(x)).
Tensor block(Network& network, const ModelSpec& spec, const std::string& name, Tensor x) {
  Tensor y = network.layerNorm(name + ".ln_1", x);
  y = network.add(linear(name + ".attn.qkv", 3 * spec.dimension), y);
  Attention attention;
  attention.name = name + ".attn";
  attention.heads = spec.heads;
  y = network.add(attention, y);
  Linear projection = linear(name + ".attn.proj", spec.dimension);
  projection.residual = x;
  x = network.add(projection, y);
  y = network.layerNorm(name + ".ln_2", x);
  Linear up = linear(name + ".mlp.up", spec.feedForward);
  up.activation = Activation::kGelu;
  y = network.add(up, y);
  Linear down = linear(name + ".mlp.down", spec.dimension);
  down.residual = x;
  return network.add(down, y);
}

}  // namespace

Model buildTransformer(const ModelSpec& spec) {
  Model model;
  Network& network = model.network;
  model.input = network.indices({spec.batch, spec.sequence}, spec.vocabulary);
  model.labels = network.indices({spec.batch, spec.sequence}, spec.vocabulary);
  Embedding embedding;
  embedding.name = "tokens";
  embedding.positions = "positions";
  embedding.rows = spec.vocabulary;
  embedding.width = spec.dimension;
  Tensor x = network.add(embedding, model.input);
  for (int64_t i = 0; i < spec.layers; ++i) x = block(network, spec, "block." + std::to_string(i), x);
  x = network.layerNorm("ln_f", x);
  Linear head = linear("head", spec.vocabulary);
  head.bias = false;
  model.logits = network.add(head, x);
  network.crossEntropy(model.logits, model.labels);
  return model;
}

}  // namespace muster::train
