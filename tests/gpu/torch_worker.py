# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the contest (contest.py): one answer in JSON for each line.

  gemm DTYPE SIZE               FLOP/s of a square product; tf32 by f32 tensors with tf32 allowed, fp8 by _scaled_mm
  copy BYTES [torch|vector]     B/s read and written by Tensor.copy_(), or by a plain vectorised kernel
  host_to_device BYTES          B/s from pinned memory
  device_to_host BYTES
  train MODEL BATCH SIZE [eager|compile]
                                samples/s of whole steps in bf16 (autocast), channels_last; SIZE: pixels, or tokens
"""
import json
import pathlib
import sys

import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench"))
import torch_models  # noqa: E402

WARMUP, MEASURED = 0.3, 1.0  # seconds
TYPES = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def seconds_of(work):
    """Median seconds of one call, by events; every call is queued behind the one before."""
    def run(count):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        marks[0].record()
        for mark in marks[1:]:
            work()
            mark.record()
        torch.cuda.synchronize()
        return sorted(a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:]))

    first = max(run(3)[1], 1e-6)
    run(min(10000, max(2, int(WARMUP / first))))
    times = run(min(10000, max(5, int(MEASURED / first))))
    return times[len(times) // 2]


def scaled(dtype, size):
    kind = torch.float8_e4m3fn if dtype == "fp8_e4m3" else torch.float8_e5m2
    a = torch.randn(size, size, device="cuda").to(kind)
    b = torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn).t()  # e5m2 x e5m2 does not exist in cuBLASLt
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def gemm(dtype, size):
    size = int(size)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    if dtype.startswith("fp8"):
        work = scaled(dtype, size)
    elif dtype == "i8":
        a = torch.randint(-127, 128, (size, size), dtype=torch.int8, device="cuda")
        b = torch.randint(-127, 128, (size, size), dtype=torch.int8, device="cuda").t()
        work = lambda: torch._int_mm(a, b)
    else:
        a, b = (torch.randn(size, size, device="cuda", dtype=TYPES[dtype]) for _ in range(2))
        out = torch.empty_like(a)
        work = lambda: torch.matmul(a, b, out=out)
    return 2 * size**3 / seconds_of(work), "FLOP/s"


def vector_copy(target, source):
    """A grid of blocks that each copy a run of 16-byte words, written in Triton."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(to, frm, count, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to + at, tl.load(frm + at, mask=at < count), mask=at < count)

    block = 4096
    return lambda: kernel[(triton.cdiv(source.numel(), block),)](target, source, source.numel(), BLOCK=block)


def copy(size, how="torch"):
    source = torch.randint(-2**31, 2**31 - 1, (int(size) // 4,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    work = vector_copy(target, source) if how == "vector" else lambda: target.copy_(source)
    rate = 2 * source.nbytes / seconds_of(work)
    if not torch.equal(source, target):
        raise RuntimeError("the copy differs")
    return rate, "B/s"


def host_copy(size, to_device):
    host = torch.randint(0, 255, (int(size),), dtype=torch.uint8).pin_memory()
    device = torch.empty(int(size), dtype=torch.uint8, device="cuda")
    work = (lambda: device.copy_(host, non_blocking=True)) if to_device else (lambda: host.copy_(device, non_blocking=True))
    return int(size) / seconds_of(work), "B/s"


steps = {}  # compiled ones: a model is asked for in every turn


def training_step(model, batch, size, how):
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    net, inputs, labels, optimizer = torch_models.make(model, batch, size, "cuda")
    if how == "compile":
        net = torch.compile(net, mode="max-autotune-no-cudagraphs")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = net(inputs)
            loss = functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        loss.backward()
        optimizer.step()

    return step


def train(model, batch, size, how="eager"):
    key = (model, int(batch), int(size), how)
    if key not in steps:
        steps[key] = training_step(*key)
    return int(batch) / seconds_of(steps[key]), "samples/s"


COMMANDS = {
    "gemm": gemm,
    "copy": copy,
    "host_to_device": lambda size: host_copy(size, True),
    "device_to_host": lambda size: host_copy(size, False),
    "train": train,
}


def main():
    for line in sys.stdin:
        name, *arguments = line.split()
        try:
            value, unit = COMMANDS[name](*arguments)
            answer = {"value": value, "unit": unit}
        except Exception as problem:  # whatever torch says is the answer; the next question may still be answered
            answer = {"error": f"{type(problem).__name__}: {problem}".splitlines()[0]}
        torch.cuda.empty_cache()
        print(json.dumps(answer), flush=True)


main()
