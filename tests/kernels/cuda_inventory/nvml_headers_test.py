# SPDX-License-Identifier: Apache-2.0
"""Compares what we declare of NVML by hand with NVIDIA's own headers, from CUDA 11.8 to the newest.

The headers are in Python's registry. A small generated source, compiled with each of them, holds every constant, field id,
size, offset and function of kernels/cuda/inventory/nvml/nvml_types.h that the header has; a name that no header has is a
mistake, too. The same for the ids that NVIDIA has moved, and for what the fake NVML says of a version.
"""
import json
import os
import re
import subprocess
import sys

SOURCE = os.environ["MUSTER_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))
import registry

FOLDER = os.path.join(os.environ["MUSTER_BUILD"], "nvml-headers")
TYPES = "kernels/cuda/inventory/nvml/nvml_types.h"
FAKE = "tests/fakes/nvml/headers.h"
CXX = os.environ.get("CXX", "g++").split()

PACKAGES = [("nvidia-nvml-dev-cu11", ["11.8.86"]),
            ("nvidia-nvml-dev-cu12", ["12.0.140", "12.1.105", "12.2.140", "12.3.101", "12.4.127", "12.5.82", "12.6.77", "12.8.55",
                                      "12.8.90", "12.9.40", "12.9.79"]),
            ("nvidia-nvml-dev", ["13.0.39", "13.0.87", "13.1.68", "13.1.115", "13.2.86", "13.3.29", "13.4.92", "13.5.37"])]
OURS_ALONE = {"NVML_TEXT_SIZE"}              # the longest of several
AT_LEAST = {"NVML_NVLINK_MAX_LINKS"}         # newer headers have more
ANY_STRUCT = {"nvmlDeviceGetGpuFabricInfoV"}  # takes every version of the struct, by its version word
LATER_MEMBERS = {"nvmlValue_t"}               # a union, whose newer members change nothing else
RENAMED = {("nvmlGpuFabricInfo_t", "cliqueId"): "partitionId"}  # until CUDA 12.1
# Drivers that came with a header, where slowdownFields() makes a difference.
BRANCHES = {"12.6": 560, "12.8": 570, "12.9": 575, "13.0": 580, "13.1": 590, "13.2": 590, "13.3": 590, "13.4": 590, "13.5": 590}
SLOWDOWNS = ["NVML_FI_DEV_CLOCKS_EVENT_REASON_" + what for what in
             ("SW_THERM_SLOWDOWN", "HW_THERM_SLOWDOWN", "HW_POWER_BRAKE_SLOWDOWN")]


def compiled(source, name, run, *options):
    """Compiles C++, and gives what the program prints where `run` says so; else the compiler's errors."""
    path = os.path.join(FOLDER, name)
    with open(path + ".cpp", "w", encoding="utf-8") as file:
        file.write(source)
    target = ["-o", path] if run else ["-fsyntax-only"]
    done = subprocess.run([*CXX, "-std=c++20", "-w", "-I", SOURCE, *options, *target, path + ".cpp"], capture_output=True, text=True,
                          check=False)
    if not run:
        return [line for line in done.stderr.splitlines() if "error:" in line]
    if done.returncode != 0:
        sys.exit(f"our own declarations do not compile:\n{done.stderr}")
    return subprocess.run([path], capture_output=True, text=True, check=True).stdout


# For every parameter of a function: its size, and the size of what it points to where that is known.
SHAPE = """
#include <array>
#include <cstddef>
template <class T> constexpr size_t targetOf() {
  if constexpr (std::is_pointer_v<T>) {
    if constexpr (requires { sizeof(std::remove_pointer_t<T>); } && !std::is_void_v<std::remove_pointer_t<T>>)
      return sizeof(std::remove_pointer_t<T>);
    else return 1000;
  } else return 0;
}
template <class R, class... A> constexpr std::array<size_t, 2 * sizeof...(A)> shapeOf(R (*)(A...)) {
  std::array<size_t, 2 * sizeof...(A)> all{};
  size_t at = 0;
  ((all[at++] = sizeof(A), all[at++] = targetOf<A>()), ...);
  return all;
}
"""


class Declarations:
    """What our header declares, by its text; values come from the compiler."""

    def __init__(self):
        with open(os.path.join(SOURCE, TYPES), encoding="utf-8") as file:
            text = file.read()
        public = text[:text.index("#define MUSTER_NVML_FUNCTIONS")]
        self.constants = sorted(set(re.findall(r"\b((?:NVML_|nvml)\w+) = ", re.sub(r"using .*", "", public))))
        self.fields = {}
        for name, body in re.findall(r"^(?:struct|union) (nvml\w+) \{(.*?)^\};", public, re.M | re.S):
            body = re.sub(r"//.*", "", body)
            self.fields[name] = re.findall(r"(\w+)(?:\[\w+\])?;", body)
        self.functions = re.findall(r"(REQUIRED|OPTIONAL)\((nvml\w+), (\(.*\))\)", text)
        if len(self.constants) < 80 or len(self.fields) < 12 or len(self.functions) < 50:
            sys.exit(f"{TYPES} is not understood: {len(self.constants)} constants, {len(self.fields)} structs, "
                     f"{len(self.functions)} functions")

    def values(self):
        rows = [f'printf("%lld\\n", (long long)({name}));' for name in self.constants]
        for struct, fields in self.fields.items():
            rows.append(f'printf("%zu\\n", sizeof({struct}));')
            rows += [f'printf("%zu %zu\\n", offsetof({struct}, {field}), sizeof({struct}::{field}));' for field in fields]
        for _, name, parameters in self.functions:
            rows.append(f"for (size_t n : shapeOf((nvmlReturn_t(*){parameters})nullptr)) printf(\"%zu \", n); puts(\"\");")
        for branch in range(400, 700):
            rows.append(f"if (const auto f = muster::cuda::slowdownFields({branch})) "
                        f"printf(\"%u %u %u\\n\", f->swThermal, f->hwThermal, f->hwPowerBrake); else puts(\"\");")
        rows.append('for (const HeaderFacts& f : kHeaders) printf("[\\"%s\\", \\"%s\\", %u, %u, %u]\\n", f.version, f.reported, '
                    'f.fieldsEnd, f.slowdowns, f.fabricInfo);')
        lines = iter(compiled(f'#include <cstdio>\n#include <type_traits>\n#include "{TYPES}"\n#include "{FAKE}"\n{SHAPE}\n'
                              "int main() {\n" + "\n".join(rows) + "\n}\n", "ours", True).splitlines())
        self.constant = {name: int(next(lines)) for name in self.constants}
        self.size, self.place = {}, {}
        for struct, fields in self.fields.items():
            self.size[struct] = int(next(lines))
            for field in fields:
                self.place[struct, field] = tuple(map(int, next(lines).split()))
        self.shape = {name: [int(n) for n in next(lines).split()] for _, name, _ in self.functions}
        self.slowdowns = {branch: [int(n) for n in next(lines).split()] for branch in range(400, 700)}
        self.fake = [json.loads(line) for line in lines]


class Header:
    def __init__(self, version, path):
        self.version, self.path = version, path
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
        self.words = set(re.findall(r"\b\w+\b", code))
        self.macros = dict(re.findall(r"^\s*#\s*define\s+(\w+)[ \t]+(\w+)", code, re.M))

    def has(self, name):
        return name in self.words

    @property
    def slowdowns(self):
        return [int(self.macros[name]) for name in SLOWDOWNS] if SLOWDOWNS[0] in self.macros else []

    def wrong(self, ours):
        """The compiler's errors about what we declare otherwise, and about required functions that are missing."""
        rows = []
        for name, value in ours.constant.items():
            if self.has(name):
                relation = "<=" if name in AT_LEAST else "=="
                rows.append(f'static_assert((long long)({name}) {relation} {value}, "{name} is not {value}");')
        for struct, fields in ours.fields.items():
            if not self.has(struct):
                continue
            rows.append(f'static_assert(sizeof({struct}) == {ours.size[struct]}, "sizeof {struct}");')
            for field in fields:
                real = field if self.has(field) else RENAMED.get((struct, field), field)
                if struct in LATER_MEMBERS and not self.has(real):
                    continue
                offset, size = ours.place[struct, field]
                rows.append(f'static_assert(offsetof({struct}, {real}) == {offset} && sizeof({struct}::{real}) == {size}, '
                            f'"{struct}.{field}");')
        errors = []
        for kind, name, _ in ours.functions:
            if not self.has(name):
                errors += [f"{name} is required and not there"] if kind == "REQUIRED" else []
                continue
            shape = ", ".join(map(str, ours.shape[name]))
            if name not in ANY_STRUCT:
                rows.append(f'static_assert(shapeOf({name}) == std::array<size_t, {len(ours.shape[name])}>{{{shape}}}, '
                            f'"parameters of {name}");')
        source = f"#include <type_traits>\n#include <nvml.h>\n{SHAPE}\n" + "\n".join(rows) + "\n"
        errors += compiled(source, "nvml_" + self.version, False, "-I", os.path.dirname(self.path))
        self.compared = len(rows)
        return errors


def wrong_slowdowns(headers, ours):
    """Branches whose ids are not those of all headers of their time; certain ones alone may have any."""
    found = []
    for release, branch in BRANCHES.items():
        of_release = [header for header in headers if header.version.startswith(release + ".")]
        ids = {tuple(header.slowdowns) for header in of_release}
        expected = list(ids.pop()) if len(ids) == 1 else []
        if ours.slowdowns[branch] != expected:
            found.append(f"driver {branch} (CUDA {release}): slowdownFields() gives {ours.slowdowns[branch]}, its headers say {expected}")
    known = set(BRANCHES.values())
    found += [f"driver {branch} comes with no header that we know, and slowdownFields() gives {ids}"
              for branch, ids in ours.slowdowns.items() if ids and branch < max(known) and branch not in known]
    return found


def wrong_fakes(headers, ours):
    by_version = {header.version: header for header in headers}
    found = []
    for version, _, end, first, fabric in ours.fake:
        header = by_version.get(version)
        if header is None:
            found.append(f"the fake knows a header {version} that is not compared")
            continue
        slowdowns = header.slowdowns
        newest = 3 if header.has("nvmlGpuFabricInfo_v3_t") else 2 if header.has("nvmlGpuFabricInfo_v2_t") else \
            1 if header.has("nvmlGpuFabricInfo_t") else 0
        real = [int(header.macros["NVML_FI_MAX"]), slowdowns[0] if slowdowns else 0, newest]
        if real != [end, first, fabric] or slowdowns not in ([], [first, first + 1, first + 2]):
            found.append(f"the fake's header {version} has {[end, first, fabric]}, the real one {real}")
    return found


def main():
    os.makedirs(FOLDER, exist_ok=True)
    try:
        headers = [Header(version, registry.fetch(package, version, "/nvml.h", os.path.join(FOLDER, version)))
                   for package, versions in PACKAGES for version in versions]
    except registry.Unavailable as why:
        print(why)
        return 1 if os.environ.get("CI") else 77
    ours = Declarations()
    ours.values()
    wrong = []
    for header in headers:
        errors = header.wrong(ours)
        wrong += [f"nvml.h {header.version}: {error}" for error in errors]
        print(f"nvml.h {header.version}: {header.compared} comparisons, {len(errors)} differences")
    names = set(ours.constants) | set(ours.fields) | {name for _, name, _ in ours.functions}
    wrong += [f"{name}: no header has it" for name in sorted(names - OURS_ALONE) if not any(header.has(name) for header in headers)]
    wrong += wrong_slowdowns(headers, ours) + wrong_fakes(headers, ours)
    print("\n".join(wrong) or "all equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
