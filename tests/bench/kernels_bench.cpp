// SPDX-License-Identifier: Apache-2.0
// Google Benchmark of what the host backend does around a measurement: fills, comparisons, patterns, memory
// kernels.
#include <benchmark/benchmark.h>

#include <memory>

#include "kernels/host/device.h"
#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

constexpr uint64_t kBytes = 64u << 20;

/// A device with two filled buffers.
struct Bench {
  Bench() : device(HostDevice::open(DeviceInfo{}).value()) {
    for (auto* buffer : {&a, &b}) {
      *buffer = device->allocate(kBytes).value();
      failed = failed || !device->fillNormal(**buffer, Dtype::kF64, 1).ok();
    }
  }
  std::unique_ptr<HostDevice> device;
  std::unique_ptr<Buffer> a, b;
  bool failed = false;
};

template <typename Work>
void measure(benchmark::State& state, Work work) {
  Bench bench;
  for (auto _ : state) bench.failed = !work(bench) || bench.failed;
  if (bench.failed) state.SkipWithError("an operation failed");
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBytes));
}

void fillNormal(benchmark::State& state) {
  const auto dtype = static_cast<Dtype>(state.range(0));
  state.SetLabel(dtypeName(dtype));
  measure(state, [dtype](Bench& bench) { return bench.device->fillNormal(*bench.a, dtype, 7).ok(); });
}
BENCHMARK(fillNormal)
    ->Arg(static_cast<int>(Dtype::kF64))
    ->Arg(static_cast<int>(Dtype::kF32))
    ->Arg(static_cast<int>(Dtype::kBf16))
    ->Arg(static_cast<int>(Dtype::kI8));

void compareBits(benchmark::State& state) {
  measure(state,
          [](Bench& bench) { return bench.device->compareBits(*bench.a, *bench.b, Dtype::kF32).ok(); });
}
BENCHMARK(compareBits);

void pattern(benchmark::State& state) {
  const NamedPattern& named = kPatterns[static_cast<size_t>(state.range(0))];
  const auto number = static_cast<uint64_t>(named.pattern);
  state.SetLabel(named.name);
  measure(state, [number](Bench& bench) {
    return bench.device->fillPattern(*bench.a, number).ok() &&
           bench.device->checkPattern(*bench.a, number).ok();
  });
}
BENCHMARK(pattern)->Arg(0)->Arg(4)->Arg(6)->Arg(8);

void memoryOp(benchmark::State& state) {
  const auto op = static_cast<MemoryOp>(state.range(0));
  measure(state, [op](Bench& bench) {
    return bench.device->memoryOp(op, *bench.a, bench.b.get(), bench.b.get()).ok();
  });
}
BENCHMARK(memoryOp)->DenseRange(static_cast<int>(MemoryOp::kRead), static_cast<int>(MemoryOp::kTriad));

}  // namespace
}  // namespace muster::host

BENCHMARK_MAIN();
