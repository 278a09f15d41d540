# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code of our CUDA modules with NVIDIA's cuobjdump, and lists what is wrong with it: GPUs without
code, local memory (spills), narrow or serial access to memory, registers for which a block does not fit.

Usage: machine_code.py TOOLKIT BUILD      prints the table of kernels/README.md
"""
import functools
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import registry

VERSION = "13.5.37"  # of both tools; reads the code of older toolkits too
FILE_REGISTERS = 1 << 16  # 32-bit registers of a multiprocessor, since compute capability 3.0 (CUDA programming guide)
MOST_THREADS = 1024  # of a block, where no __launch_bounds__ says less

# kernel -> bytes of local memory that it may have. normalKernel: CUDA's sine and cosine (programming guide, arithmetic) keep
# an array for angles above 105,615 (float) and 2^31 (double). Ours end at 2 pi, so it is not used.
LOCAL_ALLOWED = {"normalKernel": 40}

# kernel -> whether it must load (L) and store (S) 16 bytes at once. Of a template with a vector width, the instances for
# vectors of 4 floats or 8 bf16; those of width 1 are for rows that are not aligned.
WIDE = {"checkKernel": "L", "compareKernel": "L", "hashKernel": "L", "normalKernel": "S", "patternKernel": "S",
        "adam": "LS", "classifyRows": "LS", "eachRowOfColumns": "LS", "embed": "LS", "mapElements": "LS", "maxBackward": "LS",
        "maxForward": "LS", "moveHeads": "LS", "normForward": "LS", "normInputGradient": "LS", "partialColumnSums": "L",
        "sgd": "LS", "sumOverBatch": "LS", "tableGradient": "LS"}

# What streamKernel must load and store for each pair, and whether it stores a word in the end.
STREAMS = {"Read": (1, 0, 1), "Write": (0, 1, 0), "Copy": (1, 1, 0), "Triad": (2, 1, 0)}
STREAM = re.compile(r"streamKernel<.*?(\w+), (\d+)>")

ARCH = re.compile(r"^arch = sm_(\w+)$")
USED = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
USED_BY = re.compile(r"^ Function (\w+):$")
CODE_OF = re.compile(r"^\s+Function : (\w+)$")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\w\S*)\s*([^;]*);")
PTX_ENTRY = re.compile(r"\.entry (\w+)\(.*?\)(.*?)\{", re.S)
MOST_IN_PTX = re.compile(r"\.maxntid (\d+), (\d+), (\d+)")
SOURCE = re.compile(r"(?:4cuda|NS0_)\d+([a-z_]+)_cu\d")

KERNELS = pathlib.Path(__file__).resolve().parents[3] / "kernels/cuda"
SOURCES = {path.stem: str(path.relative_to(KERNELS)) for path in sorted(KERNELS.rglob("*.cu"))}


@functools.cache
def demangled(name):
    return subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()


def plain_name(full):
    """`void muster::cuda::fill_cu::fill<float>(float*)` is `fill`."""
    text, depth, kept = full, 0, []
    for character in text:
        depth += character in "<("
        if depth == 0:
            kept.append(character)
        depth -= character in ">)"
    return "".join(kept).split("::")[-1].split()[-1]


def instance_name(full):
    """The same with its template arguments: `fill<float>`."""
    text = re.sub(r"muster::|cuda::|\w+_cu::|\((?:bool|int)\)", "", full)
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            text = text[:at]
            break
    return text.removeprefix("void ").strip()


class Kernel:
    """One kernel in the code for one GPU."""

    def __init__(self, symbol, arch):
        full = demangled(symbol)
        source = SOURCE.search(symbol)
        self.arch, self.source = arch, SOURCES.get(source[1], source[1]) if source else ""
        self.name, self.instance = plain_name(full), instance_name(full)
        self.registers = self.stack = self.shared = self.local = 0
        self.threads = MOST_THREADS
        self.loads, self.stores = [], []  # bytes of each access to global memory
        self.local_accesses = 0
        self.in_flight = 0  # wide loads that are issued before one of them is waited for, at most
        self.waited_for = set()

    def add(self, operation, operands):
        kind, *modifiers = operation.split(".")
        registers = [int(number) for number in re.findall(r"\bR(\d+)\b", operands)]
        if kind in ("LDL", "STL"):
            self.local_accesses += 1
        size = next((int(m.lstrip("US")) // 8 for m in modifiers if re.fullmatch(r"[US]?(8|16)|64|128|256", m)), 4)
        if kind in ("LDG", "LD"):
            self.loads.append(size)
        elif kind in ("STG", "ST"):
            self.stores.append(size)
        wide = kind == "LDG" and size >= 16
        # The first register of a wide load is where it goes; all others are used.
        if self.waited_for & set(registers[1:] if wide else registers):
            self.waited_for = set()
        if wide:
            self.waited_for |= set(range(registers[0], registers[0] + size // 4))
            self.in_flight = max(self.in_flight, len(self.waited_for) * 4 // size)

    @property
    def vectors(self):
        widths = re.findall(r"\b\d+(?=[,>])", self.instance)
        return not widths or bool({"4", "8"} & set(widths))

    def __str__(self):
        return f"{self.instance} on sm_{self.arch}"


class Tools:
    """cuobjdump, with the nvdisasm that it starts: the toolkit's, else from Python's registry, kept in `build`."""

    def __init__(self, toolkit, build):
        self.folder = os.path.join(toolkit, "bin")
        if not all(os.path.exists(os.path.join(self.folder, tool)) for tool in ("cuobjdump", "nvdisasm")):
            self.folder = os.path.join(build, "cuda-tools", VERSION)
            for tool in ("cuobjdump", "nvdisasm"):
                os.chmod(registry.fetch(f"nvidia-cuda-{tool}", VERSION, f"/bin/{tool}", self.folder), 0o755)

    def cuobjdump(self, *arguments):
        environment = dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"])
        return subprocess.run([os.path.join(self.folder, "cuobjdump"), *arguments], env=environment, capture_output=True, text=True,
                              check=True).stdout


class Module:
    """What a library holds for GPUs: kernels by GPU and symbol, and the kernels of its PTX."""

    def __init__(self, tools, path):
        self.name = os.path.basename(path)
        self.kernels = {}
        self.read(tools.cuobjdump("--dump-sass", "--dump-resource-usage", path))
        ptx = tools.cuobjdump("--dump-ptx", path)
        self.in_ptx = {}
        for symbol, directives in PTX_ENTRY.findall(ptx):
            most = MOST_IN_PTX.search(directives)
            self.in_ptx[symbol] = int(most[1]) * int(most[2]) * int(most[3]) if most else MOST_THREADS
        for (_, symbol), kernel in self.kernels.items():
            kernel.threads = self.in_ptx.get(symbol, MOST_THREADS)

    def read(self, text):
        arch = kernel = None

        def at(symbol):
            return self.kernels.setdefault((arch, symbol), Kernel(symbol, arch))

        for line in text.splitlines():
            if found := INSTRUCTION.match(line):
                kernel.add(*found.groups())
            elif found := ARCH.match(line):
                arch = found[1]
            elif found := USED_BY.match(line) or CODE_OF.match(line):
                kernel = at(found[1])
            elif found := USED.search(line):
                if kernel:
                    kernel.registers, kernel.stack, kernel.shared, kernel.local = map(int, found.groups())

    def wrong(self, archs):
        """Everything that is wrong, in a line each."""
        found = {arch for arch, _ in self.kernels}
        yield from (f"{self.name} has no code for sm_{arch}, which the build requested" for arch in sorted(set(archs) - found))
        yield from (f"{self.name} has code for sm_{arch}, which the build did not request" for arch in sorted(found - set(archs)))
        for symbol in sorted({symbol for _, symbol in self.kernels}):
            name = instance_name(demangled(symbol))
            yield from (f"{self.name}: {name} has no code for sm_{arch}" for arch in sorted(found) if (arch, symbol) not in self.kernels)
            if symbol not in self.in_ptx:
                yield f"{self.name}: {name} has no PTX, which newer GPUs need"
        for kernel in self.kernels.values():
            yield from (f"{self.name} {kernel} {what}" for what in wrong_use(kernel))
            yield from (f"{self.name} {kernel} {what}" for what in wrong_accesses(kernel))


def wrong_use(kernel):
    allowed = LOCAL_ALLOWED.get(kernel.name, 0)
    if kernel.stack + kernel.local > allowed or (kernel.local_accesses and not allowed):
        yield (f"has {kernel.stack + kernel.local} bytes of local memory and {kernel.local_accesses} accesses to it, expected at most "
               f"{allowed} bytes: it spills, or has an array with a variable index")
    # Registers are handed out to warps, 8 of each thread at a time.
    taken = (kernel.registers + 7) // 8 * 8 * ((kernel.threads + 31) // 32 * 32)
    if taken > FILE_REGISTERS:
        yield (f"takes {kernel.registers} registers: a block of {kernel.threads} threads needs {taken}, expected at most {FILE_REGISTERS}; "
               "give it a __launch_bounds__")


def wrong_accesses(kernel):
    if kernel.name == "streamKernel":
        yield from wrong_stream(kernel)
    elif kernel.name in WIDE and kernel.vectors:
        for way, sizes in (("L", kernel.loads), ("S", kernel.stores)):
            if way in WIDE[kernel.name] and max(sizes, default=0) < 16:
                yield f"{'loads' if way == 'L' else 'stores'} at most {max(sizes, default=0)} bytes at once, expected 16"


def wrong_stream(kernel):
    operation, unroll = STREAM.search(kernel.instance).groups()
    loads, stores, words = STREAMS[operation]
    for does, sizes, expected, narrow in (("loads", kernel.loads, loads, 0), ("stores", kernel.stores, stores, words)):
        wide = sum(size >= 16 for size in sizes)
        if wide < expected * int(unroll) or len(sizes) - wide != narrow:
            yield (f"{does} {wide} times 16 bytes and {len(sizes) - wide} times less, expected {expected * int(unroll)} "
                   f"and {narrow}")
    # On sm_100 two of Read's eight are issued after the first use.
    if 4 * kernel.in_flight < 3 * loads * int(unroll):
        yield f"has {kernel.in_flight} loads in flight, expected {loads * int(unroll)}: a value is used before the next is loaded"


def table(modules):
    """Lines of Markdown: what each kernel takes on each GPU."""
    kernels = [kernel for module in modules for kernel in module.kernels.values()]
    archs = sorted({kernel.arch for kernel in kernels}, key=lambda arch: int(re.match(r"\d+", arch).group()))
    yield "| source: kernel | instances | shared memory | " + " | ".join(f"sm_{arch}" for arch in archs) + " |"
    yield "|---" * (3 + len(archs)) + "|"
    for source, name in sorted({(kernel.source, kernel.name) for kernel in kernels}):
        cells = []
        for arch in archs:
            row = [kernel for kernel in kernels if (kernel.source, kernel.name, kernel.arch) == (source, name, arch)]
            least, most = min(k.registers for k in row), max(k.registers for k in row)
            local = max(k.stack + k.local for k in row)
            cells.append((f"{least}-{most}" if least < most else f"{most}") + (f" +{local}B" if local else ""))
        # From compute capability 9.0 on a KiB more, which the system takes for itself.
        shared = min(max(k.shared for k in kernels if (k.source, k.name, k.arch) == (source, name, arch)) for arch in archs)
        yield f"| {source}: {name} | {len(row)} | {shared} B | " + " | ".join(cells) + " |"


def modules_of(build):
    """The libraries with kernels that a build folder has."""
    return [path for name in ("backend_cuda.so", "dnn/cuda_dnn.so", "nccl/cuda_nccl.so")
            if os.path.exists(path := os.path.join(build, "kernels/cuda", name))]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cuobjdump = Tools(*sys.argv[1:])
    print("\n".join(table([Module(cuobjdump, path) for path in modules_of(sys.argv[2])])))
