# SPDX-License-Identifier: Apache-2.0
"""The models of train_worker.cpp in PyTorch, driven the same way: each line "N" on stdin runs N whole training
steps and answers with one line: seconds, loss. Usage: train_torch.py MODEL THREADS
"""
import sys
import time

import torch
import torch_models
from torch.nn import functional

SIZES = {"resnet18": (32, 32), "resnet50": (8, 224), "gpt": (8, 128)}  # batch, and pixels or tokens


def main():
    torch.set_num_threads(int(sys.argv[2]))
    model, inputs, labels, optimizer = torch_models.make(sys.argv[1], *SIZES[sys.argv[1]])

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = model(inputs)
        loss = functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            loss = step()
        print(time.perf_counter() - begin, loss.item(), flush=True)


main()
