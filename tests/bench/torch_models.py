# SPDX-License-Identifier: Apache-2.0
"""The models of plugins/train/models in PyTorch, for comparisons on the CPU (train_torch.py) and on a GPU."""
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
        if hasattr(functional, "scaled_dot_product_attention"):  # from 2.0 on
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
            y = functional.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(batch, time_, width))

    def forward(self, x, mask):
        x = x + self.attention(self.before(x), mask)
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, length):
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


TEXT = {"gpt": (256, 256, 8, 4), "transformer": (32000, 1024, 16, 12)}  # vocabulary, width, heads, layers
IMAGES = {"resnet18": ([2, 2, 2, 2], False), "resnet50": ([3, 4, 6, 3], True)}


def make(name, batch, size, device="cpu"):
    """(model, inputs, labels, optimizer); `size` is the side of an image, or tokens in a sequence."""
    torch.manual_seed(1)
    if name in TEXT:
        vocabulary, *sizes = TEXT[name]
        model = Gpt(vocabulary, *sizes, size).to(device)
        inputs, labels = (torch.randint(vocabulary, (batch, size), device=device) for _ in range(2))
        return model, inputs, labels, torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
    model = resnet(*IMAGES[name]).to(device=device, memory_format=torch.channels_last)
    inputs = torch.randn(batch, 3, size, size, device=device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,), device=device)
    return model, inputs, labels, torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
