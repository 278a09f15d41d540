#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of tests/plugins/train: what PyTorch computes for small versions of each model.

Weights and inputs are not stored: they come out of the formula in `values`, which golden_model.cpp repeats. Usage, from
this folder, with Debian's python3-torch and python3-torchvision: /usr/bin/python3 make_golden.py
"""
import json
import math
import pathlib

import numpy
import torch
import torch.nn.functional as F
import torchvision

SAMPLES = 8  # elements of every gradient and parameter that are stored
# Images, by the number in their name, for which no ReLU and no maximum depends on the order in which a machine adds, in
# any step: another side of zero would change every gradient before it. compute() checks that.
IMAGES = "images 107"
MARGIN = 3


def scatter(x):
    """SplitMix64's finalizer, see kernels/spec/pattern.h."""
    x = x + numpy.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def name_key(name):
    """FNV-1a of a name."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = (key ^ byte) * 0x100000001B3 % 2**64
    return numpy.uint64(key)


def draws(name, count):
    with numpy.errstate(over="ignore"):
        return scatter(name_key(name) + numpy.arange(count, dtype=numpy.uint64))


def values(name, shape, scale):
    """Uniform in -scale ... scale, exact in f32 but for one rounding."""
    count = math.prod(shape)
    unit = (draws(name, count) >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(2**23) - numpy.float32(1)
    return torch.from_numpy((unit * numpy.float32(scale)).reshape(shape))


def indices(name, shape, limit):
    count = math.prod(shape)
    return torch.from_numpy((draws(name, count) % numpy.uint64(limit)).astype(numpy.int64).reshape(shape))


def start(model):
    """Weights by the formula: within sqrt(3 / inputs), scales around a half, everything else small.

    With smaller scales each block changes its input less, so that f32's rounding does not grow from block to block.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                fan_in = math.prod(parameter.shape[1:])
                parameter.copy_(values(name, parameter.shape, math.sqrt(3 / fan_in)))
            elif name in scales(model):
                middle = 0.125 if name.endswith("bn3.weight") else 0.5
                parameter.copy_(middle + values(name, parameter.shape, middle / 4))
            else:
                parameter.copy_(values(name, parameter.shape, 0.1))


def scales(model):
    kinds = (torch.nn.BatchNorm2d, torch.nn.LayerNorm)
    return {name + ".weight" for name, module in model.named_modules() if isinstance(module, kinds)}


class Block(torch.nn.Module):
    def __init__(self, dimension, heads, feed_forward):
        super().__init__()
        self.heads = heads
        self.ln_1 = torch.nn.LayerNorm(dimension)
        self.attn = torch.nn.ModuleDict(
            {"qkv": torch.nn.Linear(dimension, 3 * dimension), "proj": torch.nn.Linear(dimension, dimension)})
        self.ln_2 = torch.nn.LayerNorm(dimension)
        self.mlp = torch.nn.ModuleDict(
            {"up": torch.nn.Linear(dimension, feed_forward), "down": torch.nn.Linear(feed_forward, dimension)})

    def attention(self, x):
        n, t, d = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2) for part in self.attn["qkv"](x).split(d, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(d // self.heads)
        mask = torch.full((t, t), float("-inf")).triu(1)
        y = F.softmax(scores + mask, dim=-1) @ v
        return self.attn["proj"](y.transpose(1, 2).reshape(n, t, d))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp["down"](F.gelu(self.mlp["up"](self.ln_2(x))))


class Transformer(torch.nn.Module):
    def __init__(self, vocabulary, dimension, heads, layers, feed_forward, sequence):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, dimension)
        self.positions = torch.nn.Embedding(sequence, dimension)
        self.block = torch.nn.ModuleList([Block(dimension, heads, feed_forward) for _ in range(layers)])
        self.ln_f = torch.nn.LayerNorm(dimension)
        self.head = torch.nn.Linear(dimension, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.block:
            x = block(x)
        return self.head(self.ln_f(x))


def resnet(depth, width, classes):
    """torchvision's ResNet with a narrower first stage; every width follows from it."""
    block, layers = ((torchvision.models.resnet.BasicBlock, [2, 2, 2, 2]) if depth == 18 else
                     (torchvision.models.resnet.Bottleneck, [3, 4, 6, 3]))

    class Narrow(torchvision.models.ResNet):
        def __init__(self):
            super().__init__(block, layers, num_classes=classes)
            self.inplanes = width
            self.conv1 = torch.nn.Conv2d(3, width, 7, 2, 3, bias=False)
            self.bn1 = torch.nn.BatchNorm2d(width)
            for i in range(4):
                layer = self._make_layer(block, width << i, layers[i], stride=1 if i == 0 else 2)
                setattr(self, f"layer{i + 1}", layer)
            self.fc = torch.nn.Linear((width << 3) * block.expansion, classes)

    return Narrow()


def summary(tensor):
    """Sum, sum of magnitudes and a few elements, in f64."""
    flat = tensor.detach().double().flatten()
    places = [i * flat.numel() // SAMPLES for i in range(min(SAMPLES, flat.numel()))]
    if flat.numel() < SAMPLES:
        places = list(range(flat.numel()))
    return {"sum": flat.sum().item(), "magnitude": flat.abs().sum().item(), "elements": flat.numel(),
            "samples": {str(i): flat[i].item() for i in places}}


def train(model, batch, labels, optimizer, steps):
    """Losses and what gradients and parameters are after the first step and after the last."""
    golden = {"losses": [], "gradients": {}, "parameters": {}, "statistics": {}}
    for step in range(steps):
        optimizer.zero_grad()
        logits = model(batch)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        golden["losses"].append(loss.item())
        if step == 0:
            golden["gradients"] = {name: summary(p.grad) for name, p in model.named_parameters()}
            golden["logits"] = summary(logits)
        optimizer.step()
    golden["parameters"] = {name: summary(p) for name, p in model.named_parameters()}
    golden["statistics"] = {name: summary(b) for name, b in model.named_buffers() if "running" in name}
    return golden


def difference(a, b):
    """Largest difference of two summaries of one tensor, as golden_test.cpp measures it."""
    mean = b["magnitude"] / b["elements"]
    return max(abs(a["samples"][i] - b["samples"][i]) / (abs(b["samples"][i]) + mean + 1e-3) for i in b["samples"])


def optimizer_for(name, model, rate):
    """In the case's optimizer; AdamW decays weights of the transformer only, as the plugin does."""
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    # A wide epsilon: the bias of k has no gradient but rounding, and must not move by its sign.
    return torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                             lr=rate, eps=1e-5)


def distances(model):
    """Fills the list that it returns, in every pass: what each ReLU reads, and by how much each maximum is the largest."""
    read = []

    def pool(_, inputs):
        x = F.pad(inputs[0].detach(), (1, 1, 1, 1)).flatten(0, 1)[:, None]
        largest = F.unfold(x, 3, stride=2).topk(2, 1).values
        read.append(largest[:, 0] - largest[:, 1])

    for module in model.modules():
        if isinstance(module, torch.nn.ReLU):
            module.inplace = False
            module.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].detach()))
        if isinstance(module, torch.nn.MaxPool2d):
            module.register_forward_pre_hook(pool)
    return read


def check_margin(name, exact, single):
    """Fails where what a ReLU or a maximum decides is nearer to the other side than MARGIN times f32's error there."""
    for layer, (wanted, found) in enumerate(zip(exact, single, strict=True)):
        error = (wanted - found).abs().max()
        nearest = wanted[wanted != 0].abs().min()
        assert nearest > MARGIN * error, f"{name}: input of ReLU {layer} is {nearest} from zero, and f32 is off by {error}"


def compute(name, make, optimizer, rate, steps, dtype):
    """Trains one model in one type, from the same start: the golden values, and distances()."""
    torch.set_default_dtype(dtype)
    model = make()
    start(model)
    model.train()
    if name == "transformer":
        batch, labels = indices("input", (4, 16), 97), indices("labels", (4, 16), 97)
    else:
        batch, labels = values(IMAGES, (4, 3, 48, 48), 1).to(dtype), indices("labels", (4,), 10)
    read = distances(model)
    golden = {"model": name, "optimizer": optimizer, "learning_rate": rate, "torch": torch.__version__}
    golden.update(train(model, batch, labels, optimizer_for(optimizer, model, rate), steps))
    return golden, read


def main():
    torch.use_deterministic_algorithms(True)
    cases = {
        "resnet18": (lambda: resnet(18, 8, 10), "sgd", 0.01, 3),
        "resnet50": (lambda: resnet(50, 8, 10), "sgd", 0.001, 1),
        "transformer": (lambda: Transformer(97, 32, 4, 2, 64, 16), "adamw", 0.001, 3),
    }
    for name, case in cases.items():
        golden, exact = compute(name, *case, torch.float64)  # the reference: f32 is compared with it
        single, rounded = compute(name, *case, torch.float32)
        check_margin(name, exact, rounded)
        path = pathlib.Path(__file__).with_name(name + ".json")
        path.write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="utf-8")
        worst = {part: max(difference(single[part][key], golden[part][key]) for key in golden[part])
                 for part in ("gradients", "parameters", "statistics") if golden[part]}
        print(path.name, golden["losses"], "PyTorch's own f32 is off by", worst)


if __name__ == "__main__":
    main()
