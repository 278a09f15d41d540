# SPDX-License-Identifier: Apache-2.0
"""The models of train_worker.cpp in PyTorch, driven the same way: each line "N" on stdin runs N whole training
steps and answers with one line: seconds, loss. Usage: train_torch.py MODEL THREADS
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3x3 convolutions (ResNet-18), or 1x1, 3x3 with the stride, 1x1 (ResNet-50 v1.5)."""

    def __init__(self, inside, width, stride, bottleneck):
        super().__init__()
        out = width * 4 if bottleneck else width
        sizes = [(inside, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)] if bottleneck else [
            (inside, width, 3, stride), (width, width, 3, 1)]
        self.convolutions = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in sizes)
        self.shortcut = nn.Identity() if stride == 1 and inside == out else nn.Sequential(
            nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = x
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            y = norm(convolution(y))
            if number + 1 < len(self.convolutions):
                y = self.relu(y)
        y += self.shortcut(x)
        return self.relu(y)


def resnet(depths, bottleneck):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for stage, depth in enumerate(depths):
        for number in range(depth):
            width = 64 << stage
            layers.append(Block(inside, width, 2 if stage > 0 and number == 0 else 1, bottleneck))
            inside = width * 4 if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x, mask):
        batch, time_, width = x.shape
        q, k, v = (part.view(batch, time_, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, 2))
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
        weights = functional.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, time_, width))

    def forward(self, x, mask):
        x = x + self.attention(self.before(x), mask)
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=256, width=256, heads=8, layers=4, length=128):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.head(self.norm(x))


def make(name):
    """(step function that returns the loss)"""
    torch.manual_seed(1)
    if name == "gpt":
        model, inputs, labels = Gpt(), torch.randint(256, (8, 128)), torch.randint(256, (8, 128))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
    else:
        batch, size = {"resnet18": (32, 32), "resnet50": (8, 224)}[name]
        model = resnet([2, 2, 2, 2], False) if name == "resnet18" else resnet([3, 4, 6, 3], True)
        model = model.to(memory_format=torch.channels_last)
        inputs = torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
        labels = torch.randint(1000, (batch,))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = model(inputs)
        loss = functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step


def main():
    torch.set_num_threads(int(sys.argv[2]))
    step = make(sys.argv[1])
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            loss = step()
        print(time.perf_counter() - begin, loss.item(), flush=True)


main()
