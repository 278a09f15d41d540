# SPDX-License-Identifier: Apache-2.0
"""The machine code in our CUDA modules: code for each GPU that the build requested, no spills, 16 bytes per access where
memory is moved, registers for which blocks fit. And kernels compiled here that break one rule each, which must be found.

Usage: machine_code_test.py [TOOLKIT ARCHS]     ARCHS: as 80,90a; nothing where CUDA is not built in
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import machine_code
import registry

BUILD = os.environ["MUSTER_BUILD"]
TOOLKIT, ARCHS, TOOLS = "", [], None

CONTROLS = """
template <int kValues> __device__ void hold(float* data) {
  float values[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) values[i] = data[i * 4096 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kValues; ++i) data[i * 4096 + threadIdx.x] = values[kValues - 1 - i] - 2 * values[i];
}
__global__ void __launch_bounds__(1024) spills(float* data) { hold<96>(data); }
__global__ void __launch_bounds__(512) fits(float* data) { hold<96>(data); }
__global__ void unbounded(float* data) { hold<96>(data); }
__global__ void indexes(int* data) {
  int counts[64] = {};
  for (int i = 0; i < 4096; ++i) ++counts[data[i]];
  for (int i = 0; i < 64; ++i) data[i] = counts[i];
}
__global__ void hashKernel(const unsigned* data, unsigned* sum) { *sum = data[threadIdx.x] * 3; }
__global__ void patternKernel(uint2* data) { data[threadIdx.x] = {1, 2}; }

struct Copy {};
struct Triad {};
template <typename Op, int kUnroll> __global__ void streamKernel(float* to, const float* from) {
#pragma unroll
  for (int j = 0; j < kUnroll; ++j) __stcs(to + j * 512 + threadIdx.x, __ldcs(from + j * 512 + threadIdx.x));
}
template __global__ void streamKernel<Copy, 2>(float*, const float*);
template <> __global__ void streamKernel<Triad, 4>(float* to, const float* from) {
  for (int j = 0; j < 4; ++j) {
    const float4* place = reinterpret_cast<const float4*>(from) + j * 512 + threadIdx.x;
    const float4 x = __ldcs(place), y = __ldcs(place + 4096);
    __stcs(reinterpret_cast<float4*>(to) + j * 512 + threadIdx.x, float4{x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w});
    __syncthreads();
  }
}
"""


class Modules(unittest.TestCase):
    """What the build made."""

    @classmethod
    def setUpClass(cls):
        cls.modules = [machine_code.Module(TOOLS, path) for path in machine_code.modules_of(BUILD)]

    def test_are_right_on_every_gpu(self):
        for module in self.modules:
            for wrong in module.wrong(ARCHS):
                with self.subTest(wrong):
                    self.fail(wrong)

    def test_have_the_kernels_of_every_source(self):
        found = {kernel.source for module in self.modules for kernel in module.kernels.values()}
        training = any(module.name == "cuda_dnn.so" for module in self.modules)
        self.assertEqual(found, {path for path in machine_code.SOURCES.values() if training or not path.startswith("dnn/")})

    def test_have_kernels_for_every_rule(self):
        if not any(module.name == "cuda_dnn.so" for module in self.modules):
            self.skipTest("this build has no cuda_dnn.so, as the toolkit has no cuDNN")
        kernels = [kernel for module in self.modules for kernel in module.kernels.values()]
        self.assertEqual({kernel.name for kernel in kernels if kernel.vectors and kernel.name in machine_code.WIDE},
                         set(machine_code.WIDE))
        streams = {machine_code.STREAM.search(kernel.instance).groups() for kernel in kernels if kernel.name == "streamKernel"}
        self.assertEqual(streams, {(op, unroll) for op in machine_code.STREAMS for unroll in "248"})
        self.assertLessEqual(set(machine_code.LOCAL_ALLOWED), {kernel.name for kernel in kernels if kernel.stack + kernel.local})


class Controls(unittest.TestCase):
    """Kernels that break a rule."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        source = pathlib.Path(cls.folder.name) / "controls.cu"
        source.write_text(CONTROLS, encoding="utf-8")
        cls.with_ptx = cls.compiled(source, f"-gencode=arch=compute_{ARCHS[0]},code=[sm_{ARCHS[0]},compute_{ARCHS[0]}]")
        cls.without_ptx = cls.compiled(source, f"-gencode=arch=compute_{ARCHS[0]},code=sm_{ARCHS[0]}")

    @classmethod
    def compiled(cls, source, gpus):
        target = str(source.with_suffix(".fatbin"))
        subprocess.run([f"{TOOLKIT}/bin/nvcc", "-std=c++20", "-O2", "-w", gpus, "-fatbin", "-o", target, source], check=True)
        return machine_code.Module(TOOLS, target)

    def wrong(self, name):
        return "\n".join(line for line in self.with_ptx.wrong(ARCHS[:1]) if f" {name} " in line)

    def test_a_spill_is_found(self):
        self.assertRegex(self.wrong("spills"), "bytes of local memory and [1-9][0-9]* accesses to it, expected at most 0 bytes")

    def test_an_array_in_local_memory_is_found(self):
        self.assertRegex(self.wrong("indexes"), "has 256 bytes of local memory and [1-9]")

    def test_registers_for_which_no_block_fits_are_found(self):
        self.assertRegex(self.wrong("unbounded"), r"takes \d+ registers: a block of 1024 threads needs \d+, expected at most 65536")
        self.assertEqual(self.wrong("fits"), "")

    def test_narrow_accesses_are_found(self):
        self.assertIn("loads at most 4 bytes at once, expected 16", self.wrong("hashKernel"))
        self.assertIn("stores at most 8 bytes at once, expected 16", self.wrong("patternKernel"))
        narrow = self.wrong("streamKernel<Copy, 2>")
        self.assertIn("loads 0 times 16 bytes and 2 times less, expected 2 and 0", narrow)
        self.assertIn("stores 0 times 16 bytes and 2 times less, expected 2 and 0", narrow)

    def test_loads_that_wait_for_each_other_are_found(self):
        self.assertIn("has 2 loads in flight, expected 8", self.wrong("streamKernel<Triad, 4>"))

    def test_a_gpu_without_code_is_found(self):
        wrong = list(self.with_ptx.wrong([ARCHS[0], "7"]))
        self.assertIn("controls.fatbin has no code for sm_7, which the build requested", wrong)
        self.assertIn(f"controls.fatbin has code for sm_{ARCHS[0]}, which the build did not request", list(self.with_ptx.wrong(["7"])))

    def test_missing_ptx_is_found(self):
        self.assertIn("controls.fatbin: spills has no PTX, which newer GPUs need", list(self.without_ptx.wrong(ARCHS[:1])))


class Names(unittest.TestCase):
    def test_are_read_in_all_forms(self):
        for demangled in ("fill(int)", "void fill<int>(int)", "void m::fill_cu::fill<a<b>, (c)1>(d*)", "m::fill"):
            self.assertEqual(machine_code.plain_name(demangled), "fill")
        self.assertEqual(machine_code.instance_name("void muster::cuda::fill_cu::fill<float, (int)4, a<b> >(c*)"),
                         "fill<float, 4, a<b> >")


def main():
    global TOOLKIT, ARCHS, TOOLS
    if len(sys.argv) == 1:
        print("CUDA is not built in, so there is no machine code")
        return 77
    TOOLKIT, ARCHS = sys.argv[1], sys.argv[2].split(",")
    try:
        TOOLS = machine_code.Tools(TOOLKIT, BUILD)
    except registry.Unavailable as why:
        print(why)
        return 1 if os.environ.get("CI") else 77
    return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
