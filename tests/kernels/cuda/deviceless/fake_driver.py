# SPDX-License-Identifier: Apache-2.0
"""Writes C for a libcuda.so.1 that has every function of the toolkit's stub. cuDNN makes plans for a GPU that need not
be here, but looks for the driver's functions first, and loads the kernels that it has compiled. Loading needs no device
and succeeds; everything else says that there is none. Usage: fake_driver.py NM STUB OUTPUT
"""
import pathlib
import subprocess
import sys

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
LOADED = "{ static int one; *to = &one; return 0; }"
# What gives a handle of code, or gives one back.
LOADING = {
    "cuLibraryLoadData": f"(void** to) {LOADED}",
    "cuLibraryGetKernel": f"(void** to) {LOADED}",
    "cuLibraryUnload": "(void) { return 0; }",
}



def functions(nm, stub):
    listed = subprocess.run([nm, "--dynamic", "--defined-only", stub], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in listed.splitlines())
    return sorted(name for _, kind, name in fields if kind == "T" and name.startswith("cu"))


def main(nm, stub, output):
    names = functions(nm, stub)
    if not names:
        print(f"{stub}: found no function that begins with cu, expected the toolkit's stub of libcuda.so", file=sys.stderr)
        return 1
    lines = [f'__attribute__((visibility("default"))) int {name}{LOADING.get(name, f"(void) {{ return {NO_DEVICE}; }}")}' for name in names]
    pathlib.Path(output).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
