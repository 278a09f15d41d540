# SPDX-License-Identifier: Apache-2.0
"""The models of train_worker.cpp in PyTorch, driven the same way: says in one line what runs, then each line "N" on
stdin runs N whole training steps and answers with one line: seconds, loss. In bf16 as PyTorch does it on CPUs: by
autocast, parameters in f32. Usage: train_torch.py MODEL f32|bf16 eager|compiled THREADS
"""
import contextlib
import sys
import time

import torch
import torch_models
from torch.nn import functional

SIZES = {"resnet18": (32, 32), "resnet50": (8, 224), "gpt": (8, 128)}  # batch, and pixels or tokens


def main():
    name, dtype, mode, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    model, inputs, labels, optimizer = torch_models.make(name, *SIZES[name])
    if mode == "compiled":
        model = torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if dtype == "bf16" else contextlib.nullcontext():
            logits = model(inputs)
            loss = functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    print(f"torch {torch.__version__}, {dtype}, {mode}", flush=True)

    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            loss = step()
        print(time.perf_counter() - begin, loss.item(), flush=True)


main()
