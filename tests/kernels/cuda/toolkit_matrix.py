#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the CUDA backend with several versions of CUDA, each in a toolkit folder made of pinned packages, and writes a
dated table of what came of it. Run by ./dev gpu --matrix; takes gigabytes and most of an hour.

Only from 13.0 on do the Python packages hold a whole compiler: those of 12.x lack nvcc, cudafe++, fatbinary and nvlink.
For them the front end is that of CUDA 12.4 from Debian 13 (non-free), unpacked and not installed; assembler, headers and
libraries are of the version itself. What of a version was really used is in the table.
"""
import argparse
import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]
TARGETS = ["kernels/cuda/backend_cuda.so", "kernels/cuda/blas/cuda_blas.so", "kernels/cuda/dnn/cuda_dnn.so", "kernels/cuda/nccl/cuda_nccl.so"]


@dataclasses.dataclass(frozen=True)
class Toolkit:
    """A version of CUDA as packages with their versions; `debian`: the packages that hold its front end."""
    version: str
    packages: dict
    debian: dict = dataclasses.field(default_factory=dict)
    newest: tuple = ()  # architectures that only its assembler knows, where its front end is older

    @property
    def architectures(self):
        """Those of every other front end are in the row of its own version."""
        return "90a" if self.newest else "all"


FRONT_END = {"nvidia-cuda-toolkit": "12.4.131~12.4.1-2"}


def of_12(nvcc, runtime, cccl, cublas, cudnn, nccl):
    return {"nvidia-cuda-nvcc-cu12": nvcc, "nvidia-cuda-runtime-cu12": runtime, "nvidia-cuda-cccl-cu12": cccl, "nvidia-cublas-cu12": cublas,
            "nvidia-cudnn-cu12": cudnn, "nvidia-nccl-cu12": nccl}


TOOLKITS = (
    Toolkit("12.4", of_12("12.4.131", "12.4.127", "12.4.127.post1", "12.4.5.8", "9.1.0.70", "2.21.5"), FRONT_END),
    Toolkit("12.8", of_12("12.8.93", "12.8.90", "12.8.90", "12.8.4.1", "9.8.0.87", "2.26.2"), FRONT_END, ("100", "120")),
    Toolkit("12.9", of_12("12.9.86", "12.9.79", "12.9.27", "12.9.1.4", "9.10.2.21", "2.27.3"), FRONT_END, ("100", "103", "120")),
    Toolkit("13.5", {"nvidia-cuda-nvcc": "13.5.37", "nvidia-nvvm": "13.5.37", "nvidia-cuda-crt": "13.5.37", "nvidia-cuda-runtime": "13.5.37",
                     "nvidia-cuda-cccl": "13.3.5.0.6", "nvidia-cublas": "13.10.0.20", "nvidia-cudnn-cu13": "9.28.1.4", "nvidia-nccl-cu13": "2.32.3"}),
)

PROFILE = """TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
"""


def run(command, **more):
    """The command's output; an error with its end where it fails."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:6]))} ... ended with {done.returncode}:\n" + "\n".join(done.stdout.splitlines()[-15:]))
    return done.stdout


# A toolkit folder.

def place(source, target):
    """Programs are copied, as nvcc looks for its parts where it lies itself; all else is linked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() or target.is_symlink():
        target.unlink()
    if os.access(source, os.X_OK) and ".so" not in source.name:
        shutil.copy2(source, target)
    else:
        target.symlink_to(source.resolve())


def merge(source, target):
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name != "__init__.py":
            place(path, target / path.relative_to(source))


def lay_out(wheels, debian, top):
    """Makes one folder `top` of what the packages hold: bin, include, lib64, nvvm."""
    parts = {"bin": "bin", "include": "include", "lib": "lib64", "nvvm": "nvvm"}
    if debian is not None:
        programs = debian / "usr/lib/nvidia-cuda-toolkit/bin"
        merge(programs, top / "bin")
        for name in ("cudafe++", "fatbinary", "ptxas", "nvlink", "bin2c", "__nvcc_device_query"):
            place(debian / "usr/bin" / name, top / "bin" / name)
        for name in ("gcc", "g++"):  # links to the compiler that Debian 13 wants
            (top / "bin" / name).unlink(missing_ok=True)
        (top / "nvvm/bin").mkdir(parents=True, exist_ok=True)
        (top / "bin/cicc").rename(top / "nvvm/bin/cicc")
        (top / "bin/nvcc.profile").unlink(missing_ok=True)
        (top / "bin/nvcc.profile").write_text(PROFILE)
    for package in sorted((wheels / "nvidia").iterdir()):
        for source, target in parts.items():
            if (package / source).is_dir():
                merge(package / source, top / target)
    if debian is not None:  # an older nvlink refuses it, and nothing of ours is linked on the device
        (top / "lib64/libcudadevrt.a").unlink(missing_ok=True)
    if not (top / "lib").exists():
        (top / "lib").symlink_to("lib64")
    link_libraries(top / "lib64")


def link_libraries(folder):
    """Linkers look for libx.so, packages hold libx.so.12; some hold no static runtime: the shared one stands in for it."""
    for path in sorted(folder.glob("lib*.so.*")):
        plain = folder / (path.name.split(".so.")[0] + ".so")
        if not plain.exists():
            plain.symlink_to(path.name)
    runtime = sorted(folder.glob("libcudart.so.*"))
    if runtime and not (folder / "libcudart_static.a").exists():
        (folder / "libcudart_static.a").write_text(f"INPUT({runtime[0]})\n")


def install_wheels(toolkit, folder):
    if not folder.exists():
        run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder,
             *(f"{name}=={version}" for name, version in toolkit.packages.items())])
    return folder


def unpack_debian(packages, folder):
    """By apt with state of its own, as Debian 12 has neither the release nor its section among its sources."""
    root = folder / "root"
    if root.exists():
        return root
    for part in ("state/lists/partial", "cache/archives/partial", "debs"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text("")
    (folder / "sources.list").write_text(
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie non-free\n")
    options = []
    for option in (f"Dir::State={folder}/state", f"Dir::State::status={folder}/status", f"Dir::Cache={folder}/cache",
                   f"Dir::Etc::sourcelist={folder}/sources.list", "Dir::Etc::sourceparts=/dev/null", "APT::Sandbox::User=root"):
        options += ["-o", option]
    run(["apt-get", "-q", *options, "update"])
    run(["apt-get", "-q", *options, "download", *(f"{name}={version}" for name, version in packages.items())], cwd=folder / "debs")
    for package in sorted((folder / "debs").glob("*.deb")):
        run(["dpkg-deb", "-x", package, folder / "unpacking"])
    (folder / "unpacking").rename(root)
    return root


def make(toolkit, folder):
    top = folder / toolkit.version / "toolkit"
    debian = unpack_debian(toolkit.debian, folder / "debian") if toolkit.debian else None
    wheels = install_wheels(toolkit, folder / toolkit.version / "wheels")
    shutil.rmtree(top, ignore_errors=True)
    lay_out(wheels, debian, top)
    return top


# What is built with it.

def release_of(program):
    found = re.search(r"release [\d.]+, V([\d.]+)", run([program, "--version"]))
    return found.group(1) if found else "unknown"


def environment(top):
    others = [part for part in os.environ["PATH"].split(":") if "cuda" not in part]
    # Meson runs a program that nvcc linked.
    return os.environ | {"PATH": f"{top / 'bin'}:" + ":".join(others), "LD_LIBRARY_PATH": str(top / "lib64")}


def configure(top, build, *options):
    shutil.rmtree(build, ignore_errors=True)
    run(["meson", "setup", build, SOURCE, "--prefix=/", "-Dunity=on", "-Dunity_size=12", "-Dcuda=enabled", "-Dtests=false", "-Dbenchmarks=false", *options],
        env=environment(top))


def kernels():
    return sorted((SOURCE / "kernels/cuda").rglob("*.cu"))


def assemble(top, folder, architecture):
    """Every kernel's PTX by this version's ptxas for an architecture that the front end does not know yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in kernels():
        ptx = folder / (source.stem + ".ptx")
        if not ptx.exists():
            run([top / "bin/nvcc", "-std=c++20", "--expt-relaxed-constexpr", "-ptx", "-arch=compute_90", "-I", SOURCE, source, "-o", ptx],
                env=environment(top))
        run([top / "bin/ptxas", f"--gpu-name=sm_{architecture}", ptx, "-o", folder / f"{source.stem}.{architecture}.cubin"])


def attempt(work):
    """"builds", or the first line that says why not."""
    try:
        work()
        return "builds"
    except RuntimeError as problem:
        lines = [line for line in str(problem).splitlines() if "error" in line.lower()] or str(problem).splitlines()[-1:]
        return "refused: " + lines[0].split("ERROR: ")[-1].removeprefix("Problem encountered: ").strip()


def check(toolkit, folder, jobs):
    """One row of the table."""
    top = make(toolkit, folder)
    build = folder / toolkit.version / "build"

    def backend():
        configure(top, build, f"-Dgpu_archs={toolkit.architectures}")
        run(["ninja", "-C", build, f"-j{jobs}", *TARGETS], env=environment(top))

    def blackwell():
        configure(top, folder / toolkit.version / "build-100", "-Dgpu_archs=100")

    row = {"toolkit": toolkit.version, "nvcc": release_of(top / "bin/nvcc"), "ptxas": release_of(top / "bin/ptxas"),
           "libraries": ", ".join(f"{name.removeprefix('nvidia-').split('-cu1')[0]} {version}" for name, version in toolkit.packages.items()
                                  if any(word in name for word in ("runtime", "cublas", "cudnn", "nccl"))),
           "gpu_archs": toolkit.architectures, "backend": attempt(backend), "-Dgpu_archs=100": attempt(blackwell).replace("builds", "accepted")}
    row["assembled"] = "; ".join(f"sm_{arch} {attempt(lambda a=arch: assemble(top, folder / toolkit.version / 'ptx', a))}" for arch in toolkit.newest) or "-"
    return row


def cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")


def table_of(rows, date):
    names = list(rows[0])
    lines = [f"# CUDA toolkits, {date}", "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(row[name] for name in names) + " |" for row in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=[one.version for one in TOOLKITS], help="this version; may be repeated")
    parser.add_argument("--folder", type=pathlib.Path, default=cache() / "muster-toolkits",
                        help="where toolkits and builds go; not in the source tree, where Meson takes no libraries from (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--discard", action="store_true", help="delete each toolkit once its row is there")
    options = parser.parse_args()
    folder = options.folder.resolve()
    rows = []
    for toolkit in TOOLKITS:
        if options.only and toolkit.version not in options.only:
            continue
        print(f"CUDA {toolkit.version}", flush=True)
        rows.append(check(toolkit, folder, options.jobs))
        print("  " + "\n  ".join(f"{name}: {value}" for name, value in rows[-1].items()), flush=True)
        if options.discard:
            shutil.rmtree(folder / toolkit.version)
    date = datetime.date.today().isoformat()
    path = folder / f"toolkits-{date}.md"
    path.write_text(table_of(rows, date), encoding="utf-8")
    print(f"The table: {path}")
    return 0 if all(row["backend"] == "builds" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
